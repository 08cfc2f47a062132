"""Share groups: queues over topics (KIP-932)."""
