"""The coordinators of a node: their shards, over the partitions of internal topics that the node leads."""
