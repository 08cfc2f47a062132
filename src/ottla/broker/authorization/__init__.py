"""Which rights each API demands of a client, and the answer to a client that does not have them."""
