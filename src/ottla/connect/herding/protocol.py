"""What workers tell each other through the group, in the bytes of Kafka Connect's protocols `sessioned` and
`compatible`. They differ in their version alone: with `sessioned`, workers sign what they send each other.

A member says where it can be reached, how far it has read the config topic, and what it runs. The leader of
the group tells each member what it gets on top of that, and what it has to give up.
"""

import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

from ottla.connect.herding.units import Unit

PROTOCOL_TYPE: Final = "connect"
PROTOCOLS: Final = {"sessioned": 2, "compatible": 1}
"""The names of the protocols and their versions, the preferred one first."""
NO_ERROR: Final = 0


class Member(NamedTuple):
    """What a member says of itself."""

    url: str
    config_offset: int
    owned: tuple[Unit, ...] = ()


class Share(NamedTuple):
    """What the leader tells a member."""

    leader_id: str
    leader_url: str
    config_offset: int
    added: tuple[Unit, ...] = ()
    revoked: tuple[Unit, ...] = ()
    error: int = NO_ERROR
    delay_ms: int = 0


class InvalidMessage(ValueError):
    """Bytes that no worker would send."""


def encode_member(member: Member, version: int) -> bytes:
    """Return what a member says of itself."""
    owned = encode_share(Share("", "", member.config_offset, member.owned), version) if member.owned else b""
    return (
        struct.pack(">h", version)
        + _encode_text(member.url)
        + struct.pack(">q", member.config_offset)
        + struct.pack(">i", len(owned) if owned else -1)
        + owned
    )


def decode_member(data: bytes) -> Member:
    """Read what a member says of itself. Raises InvalidMessage."""
    reader = _Reader(data)
    version = reader.number(">h")
    url, config_offset = reader.text(), reader.number(">q")
    length = reader.number(">i") if version >= 1 else -1
    owned = decode_share(reader.take(length)).added if length > 0 else ()
    return Member(url, config_offset, owned)


def encode_share(share: Share, version: int) -> bytes:
    """Return what the leader tells a member."""
    return (
        struct.pack(">hh", version, share.error)
        + _encode_text(share.leader_id)
        + _encode_text(share.leader_url)
        + struct.pack(">q", share.config_offset)
        + _encode_units(share.added)
        + _encode_units(share.revoked)
        + struct.pack(">i", share.delay_ms)
    )


def decode_share(data: bytes) -> Share:
    """Read what the leader says. Raises InvalidMessage."""
    reader = _Reader(data)
    version, error = reader.number(">h"), reader.number(">h")
    leader_id, leader_url, offset = reader.text(), reader.text(), reader.number(">q")
    added = reader.units()
    revoked, delay_ms = (reader.units(), reader.number(">i")) if version >= 1 else ((), 0)
    return Share(leader_id, leader_url, offset, added, revoked, error, delay_ms)


def _encode_text(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _encode_units(units: Iterable[Unit]) -> bytes:
    by_connector: dict[str, list[int]] = {}
    for unit in units:
        by_connector.setdefault(unit.connector, []).append(unit.task)
    data = struct.pack(">i", len(by_connector))
    for name, tasks in by_connector.items():
        data += _encode_text(name) + struct.pack(f">i{len(tasks)}i", len(tasks), *tasks)
    return data


class _Reader:
    """Reads one value after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, length: int) -> bytes:
        if length < 0 or self._at + length > len(self._data):
            raise InvalidMessage("a message of the group is cut off")
        self._at += length
        return self._data[self._at - length : self._at]

    def number(self, form: str) -> int:
        number: int = struct.unpack(form, self.take(struct.calcsize(form)))[0]
        return number

    def text(self) -> str:
        length = self.number(">h")
        return "" if length < 0 else self.take(length).decode(errors="replace")

    def units(self) -> tuple[Unit, ...]:
        units = []
        for _ in range(max(0, self.number(">i"))):
            name = self.text()
            units += [Unit(name, self.number(">i")) for _ in range(max(0, self.number(">i")))]
        return tuple(units)
