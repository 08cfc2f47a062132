"""Sockets, and the bytes that go in and out by them."""
