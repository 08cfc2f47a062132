"""`ottla cluster`: the nodes of a cluster, and which of them holds what."""
