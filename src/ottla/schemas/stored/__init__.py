"""Schemas as the topic of a registry has them."""
