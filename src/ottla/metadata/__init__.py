"""The cluster's metadata: the image of topics, brokers, configs and rights, and its change by records."""
