"""What all coordinators share: shards, parked answers, timers, and which partition a key belongs to."""
