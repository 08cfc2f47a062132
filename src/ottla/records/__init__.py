"""Record batches and their compression: Kafka's message format 2, and formats 0 and 1 for reading.

Bytes only. Nothing here knows of files, offsets of a log, or what a broker accepts.
"""
