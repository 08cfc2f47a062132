"""Reads: what a fetch asks for, how it is read, and when it is answered."""
