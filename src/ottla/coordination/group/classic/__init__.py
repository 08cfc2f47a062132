"""Classic groups: the members assign partitions among themselves, the coordinator keeps them in step."""
