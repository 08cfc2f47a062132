"""Ids, offsets and other value types that every layer shares. Imports nothing of the project."""
