"""The ways to the quorum: to its other replicas, and to the controller that leads it."""
