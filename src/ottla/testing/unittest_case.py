"""Real nodes for unittest.

class Orders(KafkaTestCase):
    def test_an_order_is_booked(self) -> None:
        self.kafka.create_topic("orders")
        ...
"""

import tempfile
import unittest
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from ottla.testing.node import ThreadNode


class KafkaTestCase(unittest.TestCase):
    """Each test gets a fresh node as `self.kafka`. A `setUp` of your own must call this one's first."""

    kafka_settings: ClassVar[Mapping[str, str]] = {}
    kafka: ThreadNode

    def setUp(self) -> None:
        """Start a node; it is stopped after the test, however that ends."""
        super().setUp()
        root = self.enterContext(tempfile.TemporaryDirectory(prefix="kafka-"))
        self.kafka = self.enterContext(ThreadNode(Path(root), self.kafka_settings))
