"""Damage: found, taken out of a log, kept aside and reported."""
