"""The node: partitions, request handlers and what keeps them going, on one event loop without locks."""
