"""Partitions: their replicas, their in-sync replicas and their leaders."""
