"""Topics as a source: which offsets to read, in what pieces, and the rows in them. Spark is unknown here."""
