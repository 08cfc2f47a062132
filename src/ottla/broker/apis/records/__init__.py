"""Records and offsets: Produce, Fetch and what belongs to them."""
