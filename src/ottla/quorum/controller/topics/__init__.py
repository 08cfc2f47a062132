"""Topics: created, extended and deleted."""
