"""What keeps state of streams, without a graph and without a container: stores in, results out."""
