"""Membership in the group that chooses the writer.

A member joins, is told who writes, and sends heartbeats. When members come or go, all join again. A member
that the group has dropped is told at once that nobody writes, as far as it knows.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from ottla.client.backoff import backoff_s
from ottla.client.cluster import GROUP, JOIN_LANE, Cluster
from ottla.client.errors import BrokerError, ClientError
from ottla.registry.leading.protocol import (
    DUPLICATE_URLS,
    PROTOCOL_NAME,
    PROTOCOL_TYPE,
    Assignment,
    Identity,
    decode_assignment,
    decode_identity,
    elect,
    encode_assignment,
    encode_identity,
)
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

_logger = logging.getLogger(__name__)
_SESSION_TIMEOUT_MS: Final = 6_000
_REBALANCE_TIMEOUT_MS: Final = 30_000
_HEARTBEAT_S: Final = 1.5
_GRACE_S: Final = 5.0
_MOVED: Final = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)

Chosen = Callable[[Identity | None], Awaitable[None]]


class Election:
    """A member of the group. `chosen` is called with the writer, or None if nobody writes."""

    def __init__(self, cluster: Cluster, group_id: str, identity: Identity, chosen: Chosen) -> None:
        self._cluster = cluster
        self._group_id = group_id
        self._identity = identity
        self._chosen = chosen
        self._member_id = ""
        self._generation = -1
        self._is_leader = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Join, and stay."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Leave, so that the others need not wait."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        if self._member_id:
            member = MemberIdentity(member_id=self._member_id, reason="the registry stops")
            request = LeaveGroupRequest(group_id=self._group_id, members=(member,))
            with contextlib.suppress(ClientError, TimeoutError):
                async with asyncio.timeout(_GRACE_S):
                    await self._ask(request)

    async def _run(self) -> None:
        waits = backoff_s()
        while True:
            try:
                assignment = await self._join()
                if assignment is None:
                    await asyncio.sleep(next(waits))
                    continue
                waits = backoff_s()
                await self._take(assignment)
                await self._stay()
            except ClientError as error:
                _logger.warning("group %r cannot be joined, trying again: %s", self._group_id, error)
                await self._lose()
                await asyncio.sleep(next(waits))
            except Exception:
                # Without the group this instance would forward to a writer that may be gone.
                _logger.exception("the election of group %r failed, trying again", self._group_id)
                await self._lose()
                await asyncio.sleep(next(waits))

    async def _take(self, assignment: Assignment) -> None:
        if assignment.error == DUPLICATE_URLS:
            _logger.error(
                "two instances of group %r have the URL %s: give each a host and a port of its own",
                self._group_id,
                self._identity.url,
            )
        self._is_leader = assignment.leader_id == self._member_id
        await self._chosen(assignment.leader)

    async def _lose(self) -> None:
        self._is_leader = False
        await self._chosen(None)

    async def _join(self) -> Assignment | None:
        """Go through join and sync. None: try again."""
        answer = await self._ask_to_join()
        if answer.error_code is ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = answer.member_id
            answer = await self._ask_to_join()
        if not self._is_settled(answer.error_code):
            return None
        self._member_id, self._generation = answer.member_id, answer.generation_id
        shares: tuple[SyncGroupRequestAssignment, ...] = ()
        if answer.leader == answer.member_id:
            members = {member.member_id: decode_identity(member.metadata) for member in answer.members}
            outcome = encode_assignment(elect(members))
            shares = tuple(
                SyncGroupRequestAssignment(member_id=member_id, assignment=outcome) for member_id in members
            )
        request = SyncGroupRequest(
            group_id=self._group_id,
            generation_id=self._generation,
            member_id=self._member_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=PROTOCOL_NAME,
            assignments=shares,
        )
        synced = await self._ask(request, JOIN_LANE, _REBALANCE_TIMEOUT_MS / 1000 + _GRACE_S)
        return decode_assignment(synced.assignment) if self._is_settled(synced.error_code) else None

    async def _ask_to_join(self) -> JoinGroupResponse:
        identity = self._identity._replace(is_leader=self._is_leader)
        request = JoinGroupRequest(
            group_id=self._group_id,
            session_timeout_ms=_SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=_REBALANCE_TIMEOUT_MS,
            member_id=self._member_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=(JoinGroupRequestProtocol(name=PROTOCOL_NAME, metadata=encode_identity(identity)),),
        )
        timeout_s = _REBALANCE_TIMEOUT_MS / 1000 + _GRACE_S
        answer: JoinGroupResponse = await self._ask(request, JOIN_LANE, timeout_s)
        return answer

    async def _stay(self) -> None:
        """Send heartbeats until the group wants its members to join again."""
        silent_since_s = asyncio.get_running_loop().time()
        while True:
            await asyncio.sleep(_HEARTBEAT_S)
            request = HeartbeatRequest(
                group_id=self._group_id, generation_id=self._generation, member_id=self._member_id
            )
            now_s = asyncio.get_running_loop().time()
            try:
                code = (await self._ask(request)).error_code
            except ClientError as error:
                if not error.retriable or now_s - silent_since_s > _SESSION_TIMEOUT_MS / 1000:
                    raise
                continue
            if code is ErrorCode.REBALANCE_IN_PROGRESS:
                return
            if not self._is_settled(code) and not code.retriable:
                await self._lose()
                return
            if code is ErrorCode.NONE:
                silent_since_s = now_s

    def _is_settled(self, code: ErrorCode) -> bool:
        """Say whether a step went well. False: try again. Raises if the group does not want us."""
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            self._member_id = ""
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            return False
        if code.retriable or code is ErrorCode.REBALANCE_IN_PROGRESS:
            return False
        if code is not ErrorCode.NONE:
            raise BrokerError(code, f"group {self._group_id!r} refused this instance")
        return True

    async def _ask(self, request: Any, lane: int = 0, timeout_s: float | None = None) -> Any:
        node_id = await self._cluster.coordinator(GROUP, self._group_id)
        try:
            connection = await self._cluster.connection(node_id, lane)
            answer = await connection.ask(request, timeout_s=timeout_s)
        except ClientError:
            self._cluster.forget_coordinator(GROUP, self._group_id)
            raise
        if answer.error_code in _MOVED:
            self._cluster.forget_coordinator(GROUP, self._group_id)
        return answer
