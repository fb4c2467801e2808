"""The `samzapy` command: one module per family of verbs."""
