"""Replicas of a partition on several nodes: how followers copy, and how a leader knows what they have."""
