"""The Kafka protocol as bytes: messages, their codecs, headers and frames. No sockets.

Start with `declare` (how a message is written down), then `codec` (how it becomes bytes).

All 280 schemas of Apache Kafka are declared here, so that each can be compared with Kafka's own. Some of them
nothing encodes with, because the bytes are written by hand where they are used or because what needs them is
not there yet: `headers`, `principal`, `producer_snapshot`, `quorum_state`, `remote_log_metadata`, and the
share groups' records in `coordinator_records`.
"""
