"""Topics as a sink: rows into batches, delivered once or at least once. Spark is unknown here."""
