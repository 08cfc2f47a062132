"""Parsing and comparing schemas in processes of their own, with bounds on time and memory."""
