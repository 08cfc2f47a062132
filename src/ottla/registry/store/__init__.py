"""The topic `_schemas`: its records, what they mean, and how they are read and written."""
