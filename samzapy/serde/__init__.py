"""Values to bytes and back, by the names of the job file."""
