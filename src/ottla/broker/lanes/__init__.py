"""Short ways for clients that repeat themselves."""
