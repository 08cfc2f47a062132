"""Which instance writes: chosen by a Kafka group, as with Confluent's registry."""
