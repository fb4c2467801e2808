"""The job file: YAML with positions, laid over one another, filled in, checked, as typed settings. All errors at once."""
