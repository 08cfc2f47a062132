"""Consumer groups of KIP-848: the coordinator assigns partitions, members follow by their heartbeats."""
