"""How far groups got: committed offsets, those of open transactions, and when they expire."""
