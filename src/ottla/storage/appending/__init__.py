"""From a batch that was received to bytes in the log."""
