"""A proxy before a real Kafka that makes the chosen requests of its clients go wrong."""
