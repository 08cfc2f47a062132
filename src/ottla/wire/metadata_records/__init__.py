"""The records of the metadata log, by subject. Their key is null; the value starts with type and version."""
