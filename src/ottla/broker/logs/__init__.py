"""The replicas of this node and their logs: made, configured, moved, cleaned, removed."""
