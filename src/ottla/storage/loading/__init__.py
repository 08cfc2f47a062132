"""From a directory to a log, whatever a crash left."""
