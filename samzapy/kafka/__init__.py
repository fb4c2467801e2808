"""Kafka through confluent-kafka: the only package that imports it. Clients are made in the process that uses them, never before a fork."""
