"""What runs beside a cluster: a registry of schemas, workers of connectors."""
