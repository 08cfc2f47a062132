"""The metadata quorum in Apache Kafka's own protocol (KRaft), as a state machine without I/O.

`Replica` takes events (a request, a response, a failure, a moment, a finished sync) and returns effects. Time
and chance are arguments; so are the log and the file that remembers epoch and vote. See
docs/internals/quorum.md.
"""
