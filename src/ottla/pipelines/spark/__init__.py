"""Spark's side of pipelines: the data source, the session, and progress as a consumer group."""
