"""What clients learn about the cluster: brokers, topics and their partitions."""
