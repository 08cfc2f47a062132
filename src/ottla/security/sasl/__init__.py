"""The server's side of SASL mechanisms: tokens in, challenges out, a principal at the end."""
