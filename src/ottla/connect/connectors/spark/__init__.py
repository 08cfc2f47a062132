"""Each format of Spark as a source and a sink."""
