"""Nodes: what they serve, how they register, and how they pass requests on."""
