"""The job file: from YAML with positions to typed settings, with every error at once."""
