"""The log: Kafka's segments, indexes and checkpoints, over whatever disk the caller gives.

Nothing here opens a file, reads a clock or starts a thread by itself: see `ottla.world.disk`.
"""
