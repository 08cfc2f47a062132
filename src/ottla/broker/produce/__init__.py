"""Writes: the short way, what waits for a commit, what is opened first, what belongs to transactions."""
