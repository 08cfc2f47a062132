"""Compaction: of the records with one key only the newest stays (`cleanup.policy=compact`).

Runs beside the serving of requests: what is read are segments that no longer change, what is written are
`.cleaned` files. Only the swap at the end touches the log. The rules are those of Apache Kafka 4.3.1.
"""
