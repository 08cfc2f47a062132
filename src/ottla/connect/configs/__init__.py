"""What can be said about a connector, and whether it was said right."""
