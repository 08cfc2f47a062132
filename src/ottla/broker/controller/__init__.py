"""The controller's side of a node: what its listeners serve."""
