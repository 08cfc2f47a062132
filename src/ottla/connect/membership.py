"""A worker as a member of its group: its share of the connectors, and what it does if it leads the group.

Requests that change something are decided by the leader alone. It writes records to the config topic, and all
workers act on what they read there. So a restart, or another worker, comes to the same state.
"""

import asyncio
import base64
import contextlib
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from ottla.client import surroundings
from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError
from ottla.client.worker_group import WorkerGroup
from ottla.connect.errors import RestError
from ottla.connect.herding import protocol
from ottla.connect.herding.assign import divide
from ottla.connect.herding.decide import Records, is_key_due, wanted_units
from ottla.connect.herding.protocol import Member, Share
from ottla.connect.herding.units import Unit
from ottla.connect.settings import WorkerSettings
from ottla.connect.store import records
from ottla.connect.store.topic import TopicWriter
from ottla.connect.store.worker_store import WorkerStore

_logger = logging.getLogger(__name__)
_CHANGE_TIMEOUT_S: Final = 90.0
_KEY_CHECK_S: Final = 10.0


class Duties(Protocol):
    """Who runs the worker's share."""

    def look_again(self) -> None:
        """Compare what runs with what is to run."""

    async def give_up(self, units: Sequence[Unit]) -> None:
        """Stop those of the units that run here."""

    async def give_up_all(self) -> None:
        """Stop everything."""


class Membership:
    """The place of a worker in its group. `share` is what it is to run."""

    protocol_type = protocol.PROTOCOL_TYPE

    def __init__(
        self,
        properties: Mapping[str, str],
        settings: WorkerSettings,
        url: str,
        store: WorkerStore,
        cluster: Cluster,
    ) -> None:
        self._properties = properties
        self._settings = settings
        self._url = url
        self._store = store
        self.leader_url: str | None = None
        self.is_leader = False
        self.generation = 0
        self.share: set[Unit] = set()
        self._group = WorkerGroup(
            cluster,
            settings.group_id,
            self,
            session_timeout_ms=settings.session_timeout_ms,
            heartbeat_interval_ms=settings.heartbeat_interval_ms,
        )
        self._duties: Duties | None = None
        self._config_writer: TopicWriter | None = None
        self._change_lock = asyncio.Lock()
        self._has_joined = asyncio.Event()
        self._divided: list[Unit] = []
        self._renewing: asyncio.Task[None] | None = None
        store.when_moved.append(self._configs_moved)

    async def join(self, duties: Duties) -> None:
        """Join the other workers. `duties` carries out the share from now on."""
        self._duties = duties
        self._renewing = asyncio.create_task(self._renew_key_for_ever())
        self._group.start()
        await self._has_joined.wait()

    async def leave(self) -> None:
        """Leave the other workers. What was assigned is stopped."""
        await self._group.stop("the worker stops")
        await self._resign()

    async def stop_leading(self) -> None:
        """Renew the key no more."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)

    def _configs_moved(self) -> None:
        if self.is_leader and wanted_units(self._store.configs) != self._divided:
            self._group.rejoin()

    # As the leader

    async def change(self, decide: Callable[[], Records]) -> None:
        """Decide and write, as the leader. Raises RestError."""
        try:
            async with asyncio.timeout(_CHANGE_TIMEOUT_S), self._change_lock:
                writer = self._config_writer
                if writer is None:
                    raise RestError(
                        409,
                        "Cannot complete request momentarily due to no known leader URL, likely because a "
                        "rebalance was underway.",
                    )
                await self._store.catch_up_with_configs()
                decided = decide()
                if decided:
                    await writer.append(decided)
        except TimeoutError:
            raise RestError(500, "Request timed out. The worker is waiting for the cluster.") from None
        except ClientError as error:
            await self._resign()
            self._group.rejoin()
            raise RestError(
                409, f"Cannot complete request momentarily: the config topic could not be written: {error}"
            ) from error

    async def _lead(self) -> None:
        """Become the one who writes to the config topic: no earlier leader can from now on."""
        name = f"connect-cluster-{self._settings.group_id}"
        writer = TopicWriter(self._properties, self._store.config_log, name)
        try:
            await writer.start()
            await self._store.catch_up_with_configs()
            due = self._due_key()
            if due:
                await writer.append(due)
        except BaseException:
            with contextlib.suppress(ClientError):
                await writer.stop()
            raise
        self._config_writer = writer
        _logger.info("this worker leads the group %s now: %s", self._settings.group_id, self._url)

    async def _resign(self) -> None:
        self.is_leader = False
        if self._config_writer is not None:
            writer, self._config_writer = self._config_writer, None
            with contextlib.suppress(ClientError):
                await writer.stop()

    def _due_key(self) -> Records:
        """Return the record of a new key if the one that there is has become too old."""
        now_ms = surroundings.now_ms()
        if not is_key_due(self._store.configs.session_key, now_ms, self._settings.key_ttl_ms):
            return []
        return [records.session_key_record(base64.b64encode(secrets.token_bytes(32)).decode(), now_ms)]

    async def _renew_key_for_ever(self) -> None:
        while True:
            await asyncio.sleep(_KEY_CHECK_S)
            if self.is_leader and self._due_key():
                try:
                    await self.change(self._due_key)
                except RestError as error:
                    _logger.warning("the key of the workers was not renewed, trying again: %s", error)

    # As a member, for `WorkerGroup`

    def protocols(self) -> Sequence[tuple[str, bytes]]:
        """Say where this worker can be reached, and what it runs."""
        member = Member(f"{self._url}/", 0, tuple(sorted(self.share)))
        return [
            (name, protocol.encode_member(member, version)) for name, version in protocol.PROTOCOLS.items()
        ]

    def assign(self, chosen: str, leader_id: str, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Divide all connectors and tasks among the members, as the leader of the group."""
        known = {name: protocol.decode_member(data) for name, data in members.items()}
        self._divided = wanted_units(self._store.configs)
        divisions = divide(self._divided, {name: member.owned for name, member in known.items()})
        offset = max((member.config_offset for member in known.values()), default=0)
        url, version = known[leader_id].url, protocol.PROTOCOLS[chosen]
        shares = {
            name: Share(leader_id, url, offset, division.added, division.revoked)
            for name, division in divisions.items()
        }
        return {name: protocol.encode_share(share, version) for name, share in shares.items()}

    async def assigned(self, member_id: str, generation: int, share: bytes) -> None:
        """Take what the leader of the group gives this worker, and give up what it takes away."""
        assert self._duties is not None, "the worker joins with them"
        given = protocol.decode_share(share)
        self.generation = generation
        self.leader_url = given.leader_url
        is_leader = given.leader_id == member_id
        if is_leader and self._config_writer is None:
            await self._lead()
        elif not is_leader:
            await self._resign()
        self.is_leader = is_leader
        self.share = (self.share | set(given.added)) - set(given.revoked)
        self._has_joined.set()
        if given.revoked:
            await self._duties.give_up(given.revoked)
            # Only now may another worker have them.
            self._group.rejoin()
        self._duties.look_again()
        self._configs_moved()

    async def lost(self) -> None:
        """Stop everything: other workers may have it already."""
        assert self._duties is not None, "the worker joins with them"
        self.leader_url = None
        self.share = set()
        await self._resign()
        await self._duties.give_up_all()
