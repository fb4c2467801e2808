"""Containers as child processes: the same container code without a JVM."""
