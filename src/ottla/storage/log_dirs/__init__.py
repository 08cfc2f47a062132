"""A log directory, several of them, and the small files in them."""
