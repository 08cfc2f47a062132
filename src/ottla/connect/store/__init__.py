"""The three topics in which workers keep configs, statuses and offsets."""
