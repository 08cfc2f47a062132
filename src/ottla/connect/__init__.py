"""Connectors: data in and out of topics by configuration, behind the REST API of Kafka Connect."""
