"""Membership in the group that chooses the writer.

The leader of the group names the writer, and all members learn it. A member that the group has dropped learns
at once that nobody writes, as far as it knows.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from ottla.client.backoff import backoff_s
from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError
from ottla.client.worker_group import WorkerGroup
from ottla.registry.leading.protocol import (
    DUPLICATE_URLS,
    PROTOCOL_NAME,
    PROTOCOL_TYPE,
    Identity,
    decode_assignment,
    decode_identity,
    elect,
    encode_assignment,
    encode_identity,
)

_logger = logging.getLogger(__name__)

_PAUSE_S: Final = 1.0
_PAUSE_MAX_S: Final = 30.0
Chosen = Callable[[Identity | None], Awaitable[None]]


class Election:
    """A member of the group. `chosen` is called with the writer, or None if nobody writes."""

    def __init__(self, cluster: Cluster, group_id: str, identity: Identity, chosen: Chosen) -> None:
        self._group_id = group_id
        self._identity = identity
        self._chosen = chosen
        self._is_leader = False
        self._steps_back = False
        self._pauses = backoff_s(_PAUSE_S, _PAUSE_MAX_S)
        self._returning: asyncio.TimerHandle | None = None
        self._group = WorkerGroup(cluster, group_id, self)

    def start(self) -> None:
        """Join, and stay."""
        self._group.start()

    async def stop(self) -> None:
        """Leave, so that the others need not wait."""
        if self._returning is not None:
            self._returning.cancel()
        await self._group.stop("the registry stops")

    def step_back(self) -> None:
        """Let another instance be chosen for a while, since this one cannot write."""
        self._is_leader = False
        self._steps_back = True
        if self._returning is not None:
            self._returning.cancel()
        self._returning = asyncio.get_running_loop().call_later(next(self._pauses), self._return)
        self._group.rejoin()

    def _return(self) -> None:
        self._returning = None
        self._steps_back = False
        self._group.rejoin()

    @property
    def protocol_type(self) -> str:
        """The type of the group."""
        return PROTOCOL_TYPE

    def protocols(self) -> Sequence[tuple[str, bytes]]:
        """Return who this instance is."""
        identity = self._identity._replace(
            is_leader=self._is_leader, is_eligible=self._identity.is_eligible and not self._steps_back
        )
        return [(PROTOCOL_NAME, encode_identity(identity))]

    def assign(self, _protocol: str, _leader_id: str, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Choose the writer, and tell all members."""
        identities = {member_id: decode_identity(metadata) for member_id, metadata in members.items()}
        outcome = encode_assignment(elect(identities))
        return dict.fromkeys(members, outcome)

    async def assigned(self, member_id: str, _generation: int, share: bytes) -> None:
        """Note the writer."""
        assignment = decode_assignment(share)
        if assignment.error == DUPLICATE_URLS:
            _logger.error(
                "two instances of group %r have the URL %s: give each a host and a port of its own",
                self._group_id,
                self._identity.url,
            )
        is_leader = assignment.leader_id == member_id
        try:
            await self._chosen(assignment.leader)
        except ClientError as error:
            if not is_leader:
                raise
            _logger.warning("this instance was chosen and cannot write, another one may: %s", error)
            await self.lost()
            self.step_back()
            return
        self._is_leader = is_leader
        if is_leader:
            self._pauses = backoff_s(_PAUSE_S, _PAUSE_MAX_S)

    async def lost(self) -> None:
        """Take note that nobody writes, as far as this instance knows."""
        self._is_leader = False
        await self._chosen(None)
