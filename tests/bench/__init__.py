"""Benchmarks: ratios measured side by side on one machine, never absolute speeds. `make bench` runs them; see each module."""
