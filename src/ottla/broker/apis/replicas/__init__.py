"""Where replicas are, which of them lead, and which are in sync."""
