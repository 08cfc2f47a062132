"""Quotas, and how many connections there may be."""
