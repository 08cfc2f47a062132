"""The share coordinator: how far the records of partitions have come in share groups (KIP-932)."""
