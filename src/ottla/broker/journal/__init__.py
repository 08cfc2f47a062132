"""The journal: what this node saw, in a topic that any consumer can read."""
