"""Tasks at work: from a source to a topic, and from topics to a sink."""
