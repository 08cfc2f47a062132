"""Configs, quotas, features and what clients report."""
