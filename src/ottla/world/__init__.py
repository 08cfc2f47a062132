"""What the pure code may ask of the world, as protocols. Nothing here touches it."""
