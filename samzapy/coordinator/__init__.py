"""The job's coordinator, on the Spark driver: decides who runs what, starts containers again, tells how the job is. Sees ports only."""
