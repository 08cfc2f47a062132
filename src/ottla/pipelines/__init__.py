"""Data pipelines on Spark: topics in, topics out, with Kafka's promises kept."""
