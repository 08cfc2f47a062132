"""Lets pytest find the fixtures of `ottla.testing.plugin`.

From a checkout, pytest rewrites the assertions of the whole package that a plugin belongs to, each time. Two
threads that import at the same time can break Python 3.11 by it. So the plugin has a package of its own.
"""

from ottla.testing.plugin import kafka, kafka_cluster, kafka_process, pytest_configure, shared_kafka

__all__ = ["kafka", "kafka_cluster", "kafka_process", "pytest_configure", "shared_kafka"]
