"""How a client says who it is, before anything else is served."""
