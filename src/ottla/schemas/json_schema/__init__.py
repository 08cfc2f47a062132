"""JSON Schema: loading with references, and Confluent's rules of what may change."""
