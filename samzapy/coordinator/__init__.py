"""The job's coordinator, on the Spark driver: decides which container runs which tasks, restarts containers, reports the job's status. Uses ports only."""
