"""What the records of the offsets topic add up to: where sources go on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ottla.connect.store.records import UnreadableRecord, decode_json, encode_json

Position = tuple[dict[str, Any], dict[str, Any]]


@dataclass
class OffsetState:
    """Positions by connector. Keys are bytes: the same fields in another order are another partition."""

    positions: dict[str, dict[bytes, Position]] = field(default_factory=dict)

    def replay(self, key: bytes | None, value: bytes | None) -> None:
        """Apply a record. Raises UnreadableRecord."""
        named = decode_json(key)
        if not isinstance(named, list) or len(named) != 2 or not isinstance(named[1], dict):
            raise UnreadableRecord("the key is not a connector and a partition")
        name, partition = str(named[0]), named[1]
        known = self.positions.setdefault(name, {})
        offset = decode_json(value)
        if offset is None:
            known.pop(encode_json(partition), None)
        else:
            known[encode_json(partition)] = (partition, offset)

    def of(self, name: str) -> list[Position]:
        """Return all positions of a connector."""
        return list(self.positions.get(name, {}).values())

    def find(self, name: str, partition: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return where to go on in a partition of a source."""
        found = self.positions.get(name, {}).get(encode_json(partition))
        return None if found is None else found[1]
