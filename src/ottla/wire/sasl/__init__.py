"""Logging in, as seen by the client: what is sent, and what has to come back."""
