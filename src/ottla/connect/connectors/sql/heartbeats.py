"""Records that say that a connector lives, in Debezium's form."""

import datetime
from collections.abc import Mapping
from typing import Any, Final

from ottla.connect.data.record import Record
from ottla.connect.data.schema import INT64, STRING, struct, to_ms
from ottla.connect.plugins import Config

_KEY: Final = struct({"serverName": STRING}, name="io.debezium.connector.common.ServerNameKey")
_VALUE: Final = struct({"ts_ms": INT64}, name="io.debezium.connector.common.Heartbeat")


class Heartbeats:
    """Makes a record from time to time. With an interval of 0 it makes none."""

    def __init__(self, config: Config, now_s: float) -> None:
        self._prefix = config["topic.prefix"]
        self._topic = f"{config.get('topic.heartbeat.prefix', '__debezium-heartbeat')}.{self._prefix}"
        self._interval_s = int(config.get("heartbeat.interval.ms", "0")) / 1000
        self.query = config.get("heartbeat.action.query", "")
        """What is run with each heartbeat. Empty: nothing."""
        self._last_s = now_s

    def is_due(self, now_s: float) -> bool:
        """Say whether it is time for one. If so, the next interval begins."""
        if not self._interval_s or now_s - self._last_s < self._interval_s:
            return False
        self._last_s = now_s
        return True

    def record(self, partition: Mapping[str, Any], offset: Mapping[str, Any]) -> Record:
        """Return a heartbeat with a position."""
        now_ms = to_ms(datetime.datetime.now(datetime.UTC))
        return Record(
            self._topic,
            0,
            _KEY,
            {"serverName": self._prefix},
            _VALUE,
            {"ts_ms": now_ms},
            source_partition=partition,
            source_offset=offset,
        )
