"""Avro schemas, by the rules of Avro's Java library, which is what Confluent's registry uses."""
