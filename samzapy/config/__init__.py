"""The job file: YAML with positions; files merged, references resolved, defaults filled in, checked, as typed settings. All errors at once."""
