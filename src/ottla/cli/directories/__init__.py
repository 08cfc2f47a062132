"""Commands about data directories and log files."""
