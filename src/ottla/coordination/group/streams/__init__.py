"""Streams groups (KIP-1071): the members are threads of Kafka Streams, and what they share is tasks."""
