"""Bytes of records to and from values, by the names of Kafka's converters."""
