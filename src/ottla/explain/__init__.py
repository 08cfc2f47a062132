"""Explains what happens in a cluster, from evidence: a client, for Ottla and for any Kafka."""
