"""Membership in a classic group of workers that share work of their own, and not partitions.

A registry chooses its writer with such a group, and workers of connectors divide the connectors. What members
tell each other is bytes here: a `Role` makes and reads them. A member joins, gets its share, and sends
heartbeats. When members come or go, or one wants a new share, all join again.
"""

import asyncio
import contextlib
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from ottla.client.backoff import backoff_s
from ottla.client.cluster import GROUP, JOIN_LANE, Cluster
from ottla.client.errors import BrokerError, ClientError, RequestTimedOut
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

_logger = logging.getLogger(__name__)
_REBALANCE_TIMEOUT_MS: Final = 30_000
_GRACE_S: Final = 5.0
_MOVED: Final = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)


class _Dropped(ClientError):
    """The group does not count this member any more."""


class Role(Protocol):
    """What a member says, and what it does with what it gets."""

    @property
    def protocol_type(self) -> str:
        """The type of the group."""

    def protocols(self) -> Sequence[tuple[str, bytes]]:
        """Return what this member says of itself when it joins, by protocol, the preferred one first."""

    def assign(self, protocol: str, leader_id: str, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Divide the work, as the leader of the group, by what the members said."""

    async def assigned(self, member_id: str, generation: int, share: bytes) -> None:
        """Take this member's share."""

    async def lost(self) -> None:
        """Do without a share: the group has dropped this member, or cannot be reached."""


class WorkerGroup:
    """One member of the group."""

    def __init__(
        self,
        cluster: Cluster,
        group_id: str,
        role: Role,
        *,
        session_timeout_ms: int = 6_000,
        heartbeat_interval_ms: int = 1_500,
    ) -> None:
        self._cluster = cluster
        self._group_id = group_id
        self._role = role
        self._session_timeout_ms = session_timeout_ms
        self._heartbeat_s = heartbeat_interval_ms / 1000
        self._member_id = ""
        self._generation = -1
        self._wants_to_join = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Join, and stay."""
        self._task = asyncio.create_task(self._run())

    def rejoin(self) -> None:
        """Have the work divided again."""
        self._wants_to_join.set()

    async def stop(self, reason: str) -> None:
        """Leave, so that the others need not wait."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        if self._member_id:
            member = MemberIdentity(member_id=self._member_id, reason=reason)
            request = LeaveGroupRequest(group_id=self._group_id, members=(member,))
            with contextlib.suppress(ClientError, TimeoutError):
                async with asyncio.timeout(_GRACE_S):
                    await self._ask(request)

    async def _run(self) -> None:
        waits = backoff_s()
        while True:
            try:
                share = await self._join()
                if share is None:
                    if not self._member_id:
                        # Dropped by the group: others may have the share before this member has joined again.
                        await self._role.lost()
                    await asyncio.sleep(next(waits))
                    continue
                waits = backoff_s()
                await self._take(share)
            except _Dropped:
                await self._role.lost()
            except ClientError as error:
                _logger.warning("group %r cannot be joined, trying again: %s", self._group_id, error)
                await self._role.lost()
                await asyncio.sleep(next(waits))
            except Exception:
                # Without the group this member would work on with a share that another one may have now.
                _logger.exception("membership in group %r failed, trying again", self._group_id)
                await self._role.lost()
                await asyncio.sleep(next(waits))

    async def _join(self) -> bytes | None:
        """Go through join and sync. None: try again."""
        self._wants_to_join.clear()
        answer = await self._ask_to_join()
        if answer.error_code is ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = answer.member_id
            answer = await self._ask_to_join()
        if not self._is_settled(answer.error_code):
            return None
        self._member_id, self._generation = answer.member_id, answer.generation_id
        shares: tuple[SyncGroupRequestAssignment, ...] = ()
        protocol = answer.protocol_name or ""
        if answer.leader == answer.member_id:
            members = {member.member_id: bytes(member.metadata) for member in answer.members}
            shares = tuple(
                SyncGroupRequestAssignment(member_id=member_id, assignment=share)
                for member_id, share in self._role.assign(protocol, answer.leader, members).items()
            )
        request = SyncGroupRequest(
            group_id=self._group_id,
            generation_id=self._generation,
            member_id=self._member_id,
            protocol_type=self._role.protocol_type,
            protocol_name=protocol,
            assignments=shares,
        )
        synced = await self._ask(request, JOIN_LANE, _REBALANCE_TIMEOUT_MS / 1000 + _GRACE_S)
        return bytes(synced.assignment) if self._is_settled(synced.error_code) else None

    async def _ask_to_join(self) -> JoinGroupResponse:
        request = JoinGroupRequest(
            group_id=self._group_id,
            session_timeout_ms=self._session_timeout_ms,
            rebalance_timeout_ms=_REBALANCE_TIMEOUT_MS,
            member_id=self._member_id,
            protocol_type=self._role.protocol_type,
            protocols=tuple(
                JoinGroupRequestProtocol(name=name, metadata=metadata)
                for name, metadata in self._role.protocols()
            ),
        )
        timeout_s = _REBALANCE_TIMEOUT_MS / 1000 + _GRACE_S
        answer: JoinGroupResponse = await self._ask(request, JOIN_LANE, timeout_s)
        return answer

    async def _take(self, share: bytes) -> None:
        """Take a share, and stay. Heartbeats do not wait for it: to give something up may take long."""
        taking = asyncio.create_task(self._role.assigned(self._member_id, self._generation, share))
        taking.add_done_callback(self._maybe_rejoin)
        try:
            await self._stay()
        except asyncio.CancelledError:
            taking.cancel()
            await asyncio.gather(taking, return_exceptions=True)
            raise
        except Exception:
            await asyncio.gather(taking, return_exceptions=True)
            raise
        # Before others join with us: what this member has to give up, they may get.
        await taking

    def _maybe_rejoin(self, taking: "asyncio.Task[None]") -> None:
        if not taking.cancelled() and taking.exception() is not None:
            self.rejoin()

    async def _stay(self) -> None:
        """Send heartbeats until members are to join again.

        Raises when none was answered for as long as the group waits for one: others may have the share then.
        """
        loop = asyncio.get_running_loop()
        session_s = self._session_timeout_ms / 1000
        deadline_s = loop.time() + session_s
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wants_to_join.wait(), self._heartbeat_s)
                return
            request = HeartbeatRequest(
                group_id=self._group_id, generation_id=self._generation, member_id=self._member_id
            )
            asked_s = loop.time()
            try:
                async with asyncio.timeout_at(deadline_s):
                    code = (await self._ask(request)).error_code
            except TimeoutError:
                raise RequestTimedOut(f"no heartbeat was answered for {session_s:g} s") from None
            except ClientError as error:
                if not error.retriable:
                    raise
                continue
            if code is ErrorCode.REBALANCE_IN_PROGRESS:
                return
            if not self._is_settled(code) and not code.retriable:
                raise _Dropped(f"group {self._group_id!r} has dropped this member")
            if code is ErrorCode.NONE:
                deadline_s = asked_s + session_s

    def _is_settled(self, code: ErrorCode) -> bool:
        """Say whether a step went well. False: try again. Raises if the group does not want us."""
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            self._member_id = ""
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            return False
        if code.retriable or code is ErrorCode.REBALANCE_IN_PROGRESS:
            return False
        if code is not ErrorCode.NONE:
            raise BrokerError(code, f"group {self._group_id!r} refused this member")
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
