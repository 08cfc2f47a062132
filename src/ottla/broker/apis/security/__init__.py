"""Logins, users, tokens and access rules."""
