"""Benchmarks: samzapy beside hand-written loops, side by side on one machine. README.md says how to run and read them."""
