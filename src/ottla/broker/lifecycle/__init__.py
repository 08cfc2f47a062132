"""A node from its start to its stop, and what it does by itself in between."""
