"""The schema registry: a client of any Kafka that keeps schemas in the topic `_schemas`, with a REST API.

Records, routes and answers are those of Confluent's registry, so that either can take over from the other.
"""
