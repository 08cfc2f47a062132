"""The key that instances share, in a topic of its own that only they need to read.

The instance that leads writes a new key from time to time. The one before still counts, since the others
learn of the new one a moment later.
"""

import base64
import json
import logging
import secrets
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ottla.client import surroundings
from ottla.client.admin.admin import Admin
from ottla.client.cluster import SECOND_FETCH_LANE, Cluster
from ottla.satellite.topic import TopicReader, TopicWriter, ensure_topic

_logger = logging.getLogger(__name__)
_RECORD_KEY: Final = b"instance-key"
_AGE_MAX_MS: Final = 3_600_000
_KEY_BYTES: Final = 32


class KeyRecord(NamedTuple):
    """A key as it is written."""

    key: bytes
    value: bytes | None


class InstanceKeys:
    """The keys of all instances, as the topic says."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._cluster = cluster
        self._topic = topic
        self._reader = TopicReader(cluster, topic, self._replay, SECOND_FETCH_LANE)
        self._keys: list[bytes] = []
        self._created_ms = 0
        self._is_followed = False

    def current(self) -> Sequence[bytes]:
        """Return the keys that count, the newest first."""
        return self._keys

    async def start(self, admin: Admin) -> None:
        """Follow the topic."""
        await ensure_topic(admin, self._topic)
        await self._cluster.refresh([self._topic])
        await self._reader.start()
        self._is_followed = True

    async def stop(self) -> None:
        """Stop following."""
        await self._reader.stop()

    async def renew(self) -> None:
        """Write a new key if there is none, or an old one. Only the instance that leads does that."""
        if not self._is_followed:
            return
        await self._reader.catch_up()
        now_ms = surroundings.now_ms()
        if self._keys and now_ms - self._created_ms <= _AGE_MAX_MS:
            return
        record = key_record(secrets.token_bytes(_KEY_BYTES), now_ms)
        await TopicWriter(self._cluster, self._reader, f"ottla.instances.{self._topic}", [record]).start()

    def _replay(self, record: Any) -> None:
        try:
            content = json.loads(record.value)
            key, created_ms = base64.b64decode(content["key"], validate=True), int(content["created_ms"])
        except (ValueError, TypeError, KeyError):
            _logger.warning("offset %d of topic %r is ignored: it is no key", record.offset, self._topic)
            return
        if len(key) >= _KEY_BYTES:
            self._keys = [key, *self._keys[:1]]
            self._created_ms = created_ms


def key_record(key: bytes, now_ms: int) -> KeyRecord:
    """Return the record of a key."""
    value = {"key": base64.b64encode(key).decode(), "created_ms": now_ms}
    return KeyRecord(_RECORD_KEY, json.dumps(value, separators=(",", ":")).encode())
