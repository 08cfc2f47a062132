"""Which address shows what."""
