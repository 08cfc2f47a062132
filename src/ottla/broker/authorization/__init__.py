"""What each API demands of a client, and what a client is told that may not."""
