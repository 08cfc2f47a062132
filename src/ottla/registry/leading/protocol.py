"""What instances tell each other through the group: who they are, and who writes.

The formats are those of Confluent's registry, so that instances of both can be in one group.
"""

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

PROTOCOL_TYPE: Final = "sr"
PROTOCOL_NAME: Final = "v0"
_VERSION: Final = 1
NO_ERROR: Final = 0
DUPLICATE_URLS: Final = 1


class Identity(NamedTuple):
    """An instance: where it can be reached, whether it may write, and whether it does."""

    host: str
    port: int
    scheme: str = "http"
    is_eligible: bool = True
    is_leader: bool = False

    @property
    def url(self) -> str:
        """Where the others send what is to be written."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    def to_json(self) -> dict[str, Any]:
        """Return the identity as the group has it."""
        return {
            "version": _VERSION,
            "host": self.host,
            "port": self.port,
            "master_eligibility": self.is_eligible,
            "scheme": self.scheme,
            "leader": self.is_leader,
        }


class Assignment(NamedTuple):
    """The outcome of an election: the writer, if there is one."""

    leader_id: str | None
    leader: Identity | None
    error: int = NO_ERROR


def encode_identity(identity: Identity) -> bytes:
    """Return what a member says of itself."""
    return json.dumps(identity.to_json(), separators=(",", ":")).encode()


def decode_identity(data: bytes) -> Identity:
    """Read what a member says of itself. Raises ValueError."""
    return _identity(json.loads(data))


def _identity(value: Any) -> Identity:
    try:
        return Identity(
            host=str(value["host"]),
            port=int(value["port"]),
            scheme=value.get("scheme") or "http",
            is_eligible=bool(value.get("master_eligibility", True)),
            is_leader=bool(value.get("leader", False)),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not the identity of a registry: {error!r}") from error


def encode_assignment(assignment: Assignment) -> bytes:
    """Return what the leader of the group tells the members."""
    value: dict[str, Any] = {"version": _VERSION, "error": assignment.error}
    if assignment.leader is not None:
        value |= {"master": assignment.leader_id, "master_identity": assignment.leader.to_json()}
    return json.dumps(value, separators=(",", ":")).encode()


def decode_assignment(data: bytes) -> Assignment:
    """Read what the leader of the group said. Raises ValueError."""
    value = json.loads(data)
    named = value.get("master_identity")
    return Assignment(
        value.get("master"), None if named is None else _identity(named), int(value.get("error", NO_ERROR))
    )


def elect(members: Mapping[str, Identity]) -> Assignment:
    """Choose the writer: one that writes already, otherwise the one with the smallest URL.

    Two members with one URL would both believe that they were chosen, so then nobody is.
    """
    urls = [identity.url for identity in members.values()]
    if len(set(urls)) < len(urls):
        return Assignment(None, None, DUPLICATE_URLS)
    eligible = sorted((item.url, name) for name, item in members.items() if item.is_eligible)
    if not eligible:
        return Assignment(None, None)
    writing = [name for _, name in eligible if members[name].is_leader]
    chosen = writing[0] if len(writing) == 1 else eligible[0][1]
    return Assignment(chosen, members[chosen])
