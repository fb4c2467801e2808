"""Containers on Spark: each one long-lived task of a job of its own. The only importer of pyspark."""
