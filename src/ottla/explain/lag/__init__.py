"""How far groups are behind, how fast they read, and what comes of it."""
