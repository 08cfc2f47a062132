"""What a cluster looks like to a visitor: rows, read with few requests. No HTTP."""
