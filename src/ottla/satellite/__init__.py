"""What programs beside a cluster stand on that answer over HTTP: the registry, Connect, and others."""
