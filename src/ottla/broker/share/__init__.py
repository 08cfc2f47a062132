"""Share groups on the leaders of partitions: what is delivered to whom, and what became of it (KIP-932)."""
