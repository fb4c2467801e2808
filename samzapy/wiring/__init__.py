"""From configuration to objects: the one place that knows concrete classes.

A configuration key travels: YAML line → schema field → here → one constructor argument. Nothing below these modules sees `Settings`.
"""
