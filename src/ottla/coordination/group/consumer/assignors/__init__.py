"""Server-side assignors: pure functions from who wants what, and has what, to who gets what."""
