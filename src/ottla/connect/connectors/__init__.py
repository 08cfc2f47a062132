"""The connectors that run without Spark."""
