"""What a developer's machine needs beside samzapy: Java, and a real Kafka on loopback."""
