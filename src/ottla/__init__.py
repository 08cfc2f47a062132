"""Ottla, Kafka's sister in Python: the event-streaming system behind Kafka's own protocol."""
