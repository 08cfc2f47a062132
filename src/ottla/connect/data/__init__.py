"""What connectors pass on: schemas, values and records."""
