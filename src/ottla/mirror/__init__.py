"""Mirrors: topics of one cluster as exact copies in another, with the same offsets."""
