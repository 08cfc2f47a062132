"""Brokers: registered, fenced, unfenced, stopping, gone."""
