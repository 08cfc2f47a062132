"""The HTTP server that all satellites share: registry, and whatever else answers over HTTP."""
