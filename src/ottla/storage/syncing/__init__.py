"""What has to be synced, for whom, and what committed means."""
