"""The `quorum-state` file: the epoch, and whom this node voted for or follows in it.

It is written before an epoch or a vote counts. One line of JSON. `data_version` 1 goes with kraft.version 1;
version 0 has three more fields, of which the voters alone say something:

    {"leaderId":1,"leaderEpoch":2,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}
"""

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ottla.metadata.errors import MetadataError
from ottla.model.uuid import ZERO_UUID, Uuid

FILE: Final = "quorum-state"


class QuorumState(NamedTuple):
    """What a voter must not forget."""

    leader_id: int = -1
    leader_epoch: int = 0
    voted_id: int = -1
    voted_directory_id: Uuid = ZERO_UUID


def encode_quorum_state(state: QuorumState, kraft_version: int, voters: Sequence[int] = ()) -> bytes:
    """Return the bytes of the file. The voters are in it with kraft.version 0 only."""
    if kraft_version == 0:
        fields: dict[str, Any] = {
            "clusterId": "",
            "leaderId": state.leader_id,
            "leaderEpoch": state.leader_epoch,
            "votedId": state.voted_id,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": voter} for voter in voters],
            "data_version": 0,
        }
    else:
        fields = {
            "leaderId": state.leader_id,
            "leaderEpoch": state.leader_epoch,
            "votedId": state.voted_id,
            "votedDirectoryId": str(state.voted_directory_id),
            "data_version": 1,
        }
    return json.dumps(fields, separators=(",", ":")).encode()


def decode_quorum_state(content: bytes) -> QuorumState:
    """Read the file."""
    try:
        fields = json.loads(content)
        version = int(fields["data_version"])
        state = QuorumState(
            int(fields["leaderId"]),
            int(fields["leaderEpoch"]),
            int(fields["votedId"]),
            Uuid.from_text(fields["votedDirectoryId"]) if version else ZERO_UUID,
        )
    except (ValueError, KeyError, TypeError) as error:
        raise MetadataError(f"{FILE} cannot be read: {error!r}") from error
    if version not in (0, 1) or state.leader_epoch < 0:
        raise MetadataError(f"{FILE} has version {version} and epoch {state.leader_epoch}")
    return state


def find_static_voters(content: bytes) -> tuple[int, ...] | None:
    """Return who voted, as the file of a static quorum says. None: the metadata itself says it."""
    decode_quorum_state(content)
    fields = json.loads(content)
    if fields["data_version"] != 0:
        return None
    try:
        return tuple(int(voter["voterId"]) for voter in fields.get("currentVoters") or ())
    except (ValueError, KeyError, TypeError) as error:
        raise MetadataError(f"{FILE} cannot be read: {error!r}") from error
