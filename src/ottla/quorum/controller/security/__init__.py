"""Decisions about access rules and delegation tokens."""
