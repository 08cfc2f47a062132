"""The Kafka protocol as bytes: messages, their codecs, headers and frames. No sockets.

Start with `declare` (how a message is written down), then `codec` (how it becomes bytes).
"""
