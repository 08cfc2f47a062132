"""Changes of single records on their way, by the names of Kafka's transformations."""
