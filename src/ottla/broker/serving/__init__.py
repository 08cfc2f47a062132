"""From the bytes of a request to the handler that answers it."""
