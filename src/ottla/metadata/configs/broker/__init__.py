"""The declarations of the broker configs, by subject."""
