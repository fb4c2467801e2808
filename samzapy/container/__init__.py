"""The running part: a container owns tasks, restores their stores, processes their records and commits. Uses ports only."""
