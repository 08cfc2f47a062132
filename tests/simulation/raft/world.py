"""A simulated quorum: nodes, a network, clients, and all that can go wrong. One seed decides everything.

Time is whole milliseconds. Events of the same millisecond come in an order that the seed decides. Messages
are lost, late, doubled and overtaken; links are cut in one direction or both; nodes lose power in the middle
of a write, are killed, paused, get slow disks, wrong clocks and empty disks; voters are added and removed.
Then all of it stops, and the quorum has to come to rest within a bounded time.
"""

import heapq
from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from random import Random
from typing import Any, NamedTuple

from tests.simulation.raft.checks import Checks
from tests.simulation.raft.node import Node
from tests.simulation.raft.truth import Truth, Violation

from ottla.metadata.features import KRAFT_VERSION
from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.quorum.raft.effects import BecameLeader, Effect, Inbound, LeadershipLost, Send
from ottla.quorum.raft.settings import RaftSettings
from ottla.quorum.raft.voter_sets import EMPTY_VOTER_SET, ReplicaKey, VoterSet, static_voter
from ottla.quorum.voters import DYNAMIC, Endpoint, VoterHistory, voter
from ottla.records.builder import build_batch
from ottla.records.codec import Record
from ottla.storage.config import LogConfig
from ottla.wire.codec import decode, encode
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest, Listener
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse, SupportedFeatureKey
from ottla.wire.messages.describe_quorum import (
    DescribeQuorumPartition,
    DescribeQuorumRequest,
    DescribeQuorumTopic,
)
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest

CLUSTER_ID = "simulated-quorum-00000"
LISTENER = "CONTROLLER"
FAULTS_MS = 2_500
REST_MS = 15_000
"""For a leader to be found and everybody to catch up, many times over."""
_VERSIONS = {
    "Vote": 2,
    "BeginQuorumEpoch": 1,
    "EndQuorumEpoch": 1,
    "Fetch": 18,
    "FetchSnapshot": 1,
    "AddRaftVoter": 1,
    "RemoveRaftVoter": 0,
    "UpdateRaftVoter": 0,
    "DescribeQuorum": 2,
    "ApiVersions": 4,
}


def version_of(message: Any) -> int:
    """Return the newest version of a request or a response."""
    name = type(message).__name__
    return _VERSIONS[name.removesuffix("Request").removesuffix("Response")]


class Answer:
    """Where the answer to a request goes: back over the network."""

    def __init__(self, world: "World", sender: Node, receiver: Node, send: Send) -> None:
        self._world = world
        self._sender = sender
        self._sender_starts = sender.starts
        self._receiver = receiver
        self._send = send
        self.request = send.request

    def __call__(self, response: Any) -> None:
        world, sender, correlation_id = self._world, self._sender, self._send.correlation_id
        message = world.through_wire(response)

        def deliver() -> None:
            if sender.starts == self._sender_starts:
                sender.receive_response(correlation_id, message)

        world.carry(self._receiver, sender, deliver)


class Faults(NamedTuple):
    """How bad a world is: chances of a message, or of a moment, in thousandths."""

    lost: int
    doubled: int
    late: int
    crash: int
    kill: int
    partition: int
    pause: int
    slow_disk: int
    clock_jump: int
    resign: int
    change: int
    wipe: int
    snapshot: int


_CALM = Faults(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)


class World:
    """The whole simulation of one seed."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = Random(seed)
        self.now_ms = 0
        self.truth = Truth()
        self.nodes: dict[int, Node] = {}
        self.checks = Checks(self.truth, self.nodes)
        self.faults = self._pick_faults()
        # By chances of its own, so that seeds without it are the same as before there was damage.
        self._damages = Random(f"damage {seed}")
        self._damage_chance = self._damages.choice((0, 0, 20, 80))
        self.trace = blake2b(digest_size=16)
        self.events = 0
        self._queue: list[tuple[int, int, int, Callable[[], None]]] = []
        self._count = 0
        self._cut: dict[tuple[int, int], int] = {}
        self._goes_through_wire = seed % 4 == 0
        self._payloads = 0
        # What a client was promised: offset and epoch by node and start, until it is committed or lost.
        self._promised: list[tuple[Node, int, int, int]] = []
        self.acknowledged = 0
        self.is_calm = False
        self._make_nodes(rng)

    def _pick_faults(self) -> Faults:
        """Worlds differ in what is bad in them, so that each fault is also seen without all others."""
        rng = self.rng

        def maybe(most: int) -> int:
            return rng.choice((0, most // 3, most))

        return Faults(
            lost=maybe(150),
            doubled=maybe(60),
            late=maybe(150),
            crash=maybe(30),
            kill=maybe(20),
            partition=maybe(40),
            pause=maybe(20),
            slow_disk=maybe(20),
            clock_jump=maybe(15),
            resign=maybe(10),
            change=maybe(120),
            wipe=maybe(8),
            snapshot=maybe(60),
        )

    def _make_nodes(self, rng: Random) -> None:
        voters = rng.choice((1, 3, 3, 3, 5))
        observers = rng.choice((0, 1, 1, 2))
        self.is_dynamic = rng.random() < 0.75
        ids = list(range(1, voters + observers + 1))
        keys = {
            node_id: ReplicaKey(node_id, Uuid(bytes([node_id] * 8) + rng.randbytes(8))) for node_id in ids
        }
        initial = ids[:voters]
        described = [voter(node_id, keys[node_id].directory_id, [_endpoint(node_id)]) for node_id in initial]
        static = VoterSet.of([static_voter(node_id, _endpoint(node_id)) for node_id in initial])
        quorum = VoterHistory(DYNAMIC, VoterSet.of(described).voters)
        config = LogConfig(segment_bytes=rng.choice((600, 4000, 1 << 20)), is_deleted=False)
        self.auto_join = rng.random() < 0.7
        for node_id in ids:
            settings = RaftSettings(
                cluster_id=CLUSTER_ID,
                me=keys[node_id],
                endpoints=(_endpoint(node_id),),
                listener=LISTENER,
                bootstrap_servers=tuple([_endpoint(one)[1:] for one in initial]) if self.is_dynamic else (),
                static_voters=EMPTY_VOTER_SET if self.is_dynamic else static,
                # One of the observers is a broker, which never votes.
                can_become_voter=node_id in initial or node_id % 2 == 0,
                auto_join=self.auto_join and self.is_dynamic,
                # Shorter than in earnest, so that more happens between two messages.
                fetch_timeout_ms=300,
                election_timeout_ms=150,
                election_backoff_max_ms=150,
                request_timeout_ms=300,
                retry_backoff_ms=8,
                fetch_wait_ms_max=80,
                fetch_snapshot_bytes_max=rng.choice((100, 1 << 20)),
                fetch_bytes_max=rng.choice((300, 1 << 20)),
            )
            node = Node(self, settings, config, Random(rng.getrandbits(64)))
            self.nodes[node_id] = node
            node.format(quorum if self.is_dynamic and node_id in initial else None)
        for node in self.nodes.values():
            self.at(rng.randrange(50), node.check_start)

    # Running.

    def run(self) -> None:
        """Let faults happen for a while, then let the quorum come to rest."""
        self.at(300, self._do_something)
        self.at(30, self._client)
        self._run_until(FAULTS_MS)
        self._heal()
        end_ms = self.now_ms + REST_MS
        while self.now_ms < end_ms and not self._is_at_rest():
            self._run_until(self.now_ms + 50)
        if not self._is_at_rest():
            raise Violation(f"ProgressAfterFaults: {self._describe()}")
        self.checks.check_at_end()

    def _run_until(self, end_ms: int) -> None:
        queue = self._queue
        while queue and queue[0][0] <= end_ms:
            self.now_ms, _, _, run = heapq.heappop(queue)
            self.events += 1
            run()
        self.now_ms = end_ms

    def at(self, time_ms: int, run: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._queue, (time_ms, self.rng.getrandbits(16), self._count, run))

    def at_node(self, node: Node, time_ms: int, run: Callable[[], None]) -> None:
        """Do something at a node. One that is paused does it later."""

        def maybe_later() -> None:
            if node.paused_until_ms > self.now_ms:
                self.at(node.paused_until_ms, run)
            else:
                run()

        self.at(time_ms, maybe_later)

    def note(self, *what: object) -> None:
        self.trace.update(f"{self.now_ms} {what}\n".encode())

    # The network.

    def send(self, sender: Node, send: Send) -> None:
        """Carry a request."""
        receiver = self._node_at(send)
        self.note(sender.node_id, type(send.request).__name__, send.correlation_id, send.destination.port)
        starts = sender.starts

        def fail(error: ErrorCode = ErrorCode.NETWORK_EXCEPTION) -> None:
            if sender.starts == starts:
                sender.fail(send, error)

        if receiver is None or not receiver.is_up:
            # Mostly the port refuses; sometimes there is not even a refusal.
            if self.rng.random() < 0.8:
                refuse = partial(fail, ErrorCode.BROKER_NOT_AVAILABLE)
                self.at_node(sender, self.now_ms + self._delay_ms(), refuse)
            return
        request = self.through_wire(send.request)

        def deliver() -> None:
            answer = Answer(self, sender, receiver, send)
            if isinstance(request, ApiVersionsRequest):
                if receiver.is_up:
                    answer(_api_versions())
                return
            receiver.receive(Inbound(answer, request, version_of(request)))

        if not self.carry(sender, receiver, deliver) and self.rng.random() < 0.5:
            self.at_node(sender, self.now_ms + self._delay_ms(), fail)

    def carry(self, sender: Node, receiver: Node, deliver: Callable[[], None]) -> bool:
        """Carry a message. Returns False if it is lost."""
        rng, faults = self.rng, self.faults
        if self._is_cut(sender.node_id, receiver.node_id) or rng.randrange(1000) < faults.lost:
            return False
        copies = 2 if rng.randrange(1000) < faults.doubled else 1
        for _ in range(copies):
            self.at_node(receiver, self.now_ms + self._delay_ms(), deliver)
        return True

    def through_wire(self, message: Any) -> Any:
        """Write a message and read it again, in some worlds."""
        if not self._goes_through_wire:
            return message
        version = version_of(message)
        return decode(type(message), encode(message, version), version)

    def _delay_ms(self) -> int:
        if self.rng.randrange(1000) < self.faults.late:
            return self.rng.choice((10, 40, 150, 600)) + self.rng.randrange(20)
        return 1 + self.rng.randrange(4)

    def _node_at(self, send: Send) -> Node | None:
        return self.nodes.get(send.destination.port - 9000)

    def _is_cut(self, sender: int, receiver: int) -> bool:
        return self._cut.get((sender, receiver), 0) > self.now_ms

    # Faults.

    def _do_something(self) -> None:
        if self.is_calm:
            return
        rng, faults = self.rng, self.faults
        node = self.nodes[rng.choice(list(self.nodes))]
        for kind, chance in faults._asdict().items():
            if kind not in ("lost", "doubled", "late") and rng.randrange(1000) < chance:
                getattr(self, f"_{kind}")(node)
        if self._damages.randrange(1000) < self._damage_chance:
            self._damage(self.nodes[self._damages.choice(list(self.nodes))])
        self.at(self.now_ms + 15, self._do_something)

    def _crash(self, node: Node) -> None:
        if node.is_up:
            self.note("crash", node.node_id)
            if self.rng.random() < 0.5:
                # Power goes in the middle of something.
                node.disk.cut_power_after(self.rng.choice((1, 2, 3, 5, 9)))
            else:
                node.crash(loses_power=True)

    def _kill(self, node: Node) -> None:
        if node.is_up:
            node.crash(loses_power=False)

    def node_crashed(self, node: Node) -> None:
        """Have a node start again after a while."""
        self.note("down", node.node_id)
        down_ms = self.rng.choice((5, 60, 250, 700))
        self.at(self.now_ms + down_ms, lambda: self._restart(node))

    def _restart(self, node: Node) -> None:
        if not node.is_up:
            self.note("start", node.node_id)
            node.check_start()

    def _partition(self, node: Node) -> None:
        """Cut some links: of one node or between two groups, in one direction or both."""
        rng = self.rng
        until_ms = self.now_ms + rng.choice((40, 200, 500, 1000))
        ids = list(self.nodes)
        group = {node.node_id} if rng.random() < 0.6 else set(rng.sample(ids, rng.randrange(1, len(ids) + 1)))
        is_one_way = rng.random() < 0.4
        for one in sorted(group):
            for other in ids:
                if other not in group:
                    self._cut[one, other] = until_ms
                    if not is_one_way:
                        self._cut[other, one] = until_ms

    def _pause(self, node: Node) -> None:
        node.paused_until_ms = self.now_ms + self.rng.choice((30, 300, 700))

    def _slow_disk(self, node: Node) -> None:
        node.sync_ms = self.rng.choice(((1, 4), (10, 60), (80, 500)))

    def _clock_jump(self, node: Node) -> None:
        rng = self.rng
        if rng.random() < 0.5:
            node.wall_ahead_ms += rng.choice((-3_600_000, -5000, 5000, 3_600_000))
        else:
            # Its timers jump too, as after a machine was suspended.
            node.ahead_ms += rng.choice((100, 500, 60_000))

    def _resign(self, node: Node) -> None:
        leader = node.leads
        if leader is not None:
            epoch = leader.epoch
            node.ask(lambda replica, now: replica.resign(epoch, now))

    def _snapshot(self, node: Node) -> None:
        node.write_snapshot()

    def _wipe(self, node: Node) -> None:
        """Give a node an empty disk. One at a time: no quorum survives the loss of two of three."""
        if not (self.is_dynamic and self.auto_join) or not node.settings.can_become_voter:
            return
        if self._has_gone_voter():
            return
        sets = self._voter_sets()
        if any(len(voters) < 3 for voters in sets) or any(not other.is_up for other in self.nodes.values()):
            return
        self.checks.gone[node.settings.me] = node.durable_end
        if node.is_up:
            node.replica = None
        node.wipe(Uuid(bytes([node.node_id] * 8) + self.rng.randbytes(8)))
        self.note("wipe", node.node_id)
        self.node_crashed(node)

    def _damage(self, node: Node) -> None:
        """Damage the log of a voter, whose next start finds it. One at a time, as with empty disks."""
        if not node.settings.can_become_voter or node.durable_end == 0 or self._has_gone_voter():
            return
        # Two of two voters cannot do without each other, also if only one has heard that they are two.
        sets = self._voter_sets()
        if not sets or any(len(voters) < 3 for voters in sets) or not node.has_promised:
            return
        if any(not other.is_up for other in self.nodes.values() if other is not node):
            return
        self.note("damage", node.node_id)
        if node.is_up:
            node.replica = None
            node.disk.kill()
            self.node_crashed(node)
        node.damage()

    def _has_gone_voter(self) -> bool:
        if any(node.abstains for node in self.nodes.values()):
            return True
        return any(key in self.checks.gone for voters in self._voter_sets() for key in voters.keys)

    def _voter_sets(self) -> list[VoterSet]:
        """Return the voters as the nodes see them that have a disk which knows."""
        return [
            node.replica.voters
            for node in self.nodes.values()
            if node.replica is not None and node.replica.voters
        ]

    def _change(self, node: Node) -> None:
        """Add or remove a voter, or make a static quorum dynamic, through a leader."""
        leaders = [one for one in self.nodes.values() if one.leads is not None]
        if not leaders:
            return
        leader = self.rng.choice(leaders)
        replica = leader.replica
        assert replica is not None
        assert leader.leads is not None
        if not replica.history.is_dynamic:
            if self.rng.random() < 0.2:
                epoch = leader.leads.epoch
                leader.ask(lambda one, now: one.upgrade_kraft_version(epoch, DYNAMIC, now)[2])
            return
        key = node.settings.me
        roll = self.rng.random()
        if roll < 0.1:
            topic = DescribeQuorumTopic(
                topic_name="__cluster_metadata", partitions=(DescribeQuorumPartition(partition_index=0),)
            )
            leader.receive(Inbound(_nobody, DescribeQuorumRequest(topics=(topic,)), 2))
        elif replica.voters.is_voter(key):
            # With a voter whose disk is gone, the others are needed. And who joins by itself would be back.
            if self._has_gone_voter() or len(replica.voters) < 2 or key.directory_id == ZERO_UUID:
                return
            ask = RemoveRaftVoterRequest(
                cluster_id=CLUSTER_ID, voter_id=key.node_id, voter_directory_id=key.directory_id
            )
            leader.receive(Inbound(_nobody, ask, 0))
        elif node.settings.can_become_voter:
            name, host, port = node.settings.endpoints[0]
            add = AddRaftVoterRequest(
                cluster_id=CLUSTER_ID,
                timeout_ms=1000,
                voter_id=key.node_id,
                voter_directory_id=key.directory_id,
                listeners=(Listener(name=name, host=host, port=port),),
                ack_when_committed=self.rng.random() < 0.5,
            )
            leader.receive(Inbound(_nobody, add, 1))

    def _heal(self) -> None:
        """End all faults."""
        self.is_calm = True
        self.faults = _CALM
        self._cut.clear()
        for node in self.nodes.values():
            node.paused_until_ms = 0
            node.sync_ms = (1, 4)
            node.disk._changes_left = None
            self._restart(node)

    # The client.

    def _client(self) -> None:
        """Append through whoever believes to lead."""
        rng = self.rng
        for node in list(self.nodes.values()):
            leader = node.leads
            if leader is not None and rng.random() < 0.8:
                self._append(node, leader.epoch)
        self.at(self.now_ms + rng.choice((3, 15, 50, 120)), self._client)

    def _append(self, node: Node, epoch: int) -> None:
        self._payloads += 1
        payload = b"%d" % self._payloads + b"." * self.rng.randrange(60)
        records = [Record(at, node.now.wall_ms, None, payload) for at in range(self.rng.choice((1, 1, 3)))]
        batch = build_batch(records, base_offset=0, leader_epoch=epoch)
        offset = node.append(batch, epoch)
        if offset is not None:
            self._promised.append((node, node.starts, epoch, offset))

    def applied(self, node: Node) -> None:
        """Answer the client whose records are committed. The truth has them from then on."""
        left = []
        for promise in self._promised:
            leader, starts, epoch, offset = promise
            is_kept = leader is node and starts == node.starts and offset < node.applied
            if is_kept and node.leads is not None and node.leads.epoch == epoch:
                self.acknowledged += 1
            else:
                left.append(promise)
        self._promised = left
        self.note("applied", node.node_id, node.applied)

    def leadership_changed(self, node: Node, effect: Effect) -> None:
        """Forget what was promised by who leads no more: it may or may not be there."""
        if isinstance(effect, LeadershipLost):
            self._promised = [one for one in self._promised if one[0] is not node or one[2] != effect.epoch]
        elif isinstance(effect, BecameLeader):
            self.note("leads", node.node_id, effect.epoch)

    def refused(self, node: Node, what: str) -> None:
        self.note("refused", node.node_id, what)

    # The end.

    def trace_digest(self) -> str:
        """Return a digest of all that happened, and of every byte that was written."""
        digest = self.trace.copy()
        for node in self.nodes.values():
            digest.update(node.disk.trace.encode())
        return digest.hexdigest()

    def _is_at_rest(self) -> bool:
        """Say whether one leads, all have caught up with it, and its epoch has something committed."""
        leaders = [node for node in self.nodes.values() if node.leads is not None]
        if len(leaders) != 1 or self.truth.end == 0:
            return False
        (leader,) = leaders
        state = leader.leads
        assert state is not None
        if leader.replica is None or not leader.replica.is_voter:
            return False
        if state.high_watermark is None or self.truth.last_epoch != state.epoch:
            return False
        return all(
            node.replica is not None
            and node.replica.epoch == state.epoch
            and node.applied >= state.start_offset
            for node in self.nodes.values()
        )

    def _describe(self) -> str:
        parts = [f"committed up to {self.truth.end} in epoch {self.truth.last_epoch}"]
        for node in self.nodes.values():
            replica = node.replica
            if replica is None:
                parts.append(f"{node} is down")
                continue
            log = replica.log
            parts.append(
                f"{node} is {replica.state.name.value} in epoch {replica.epoch} of {replica.leader_id}, "
                f"log {log.start_offset} to {log.end_offset} (epoch {log.last_epoch}), "
                f"applied {node.applied}, committed {replica.high_watermark}, voters {replica.voters.ids}"
            )
        return "; ".join(parts)


def _endpoint(node_id: int) -> Endpoint:
    return Endpoint(LISTENER, "host", 9000 + node_id)


def _api_versions() -> ApiVersionsResponse:
    feature = SupportedFeatureKey(name=KRAFT_VERSION, min_version=0, max_version=1)
    return ApiVersionsResponse(error_code=ErrorCode.NONE, api_keys=(), supported_features=(feature,))


def _nobody(_response: Any) -> None:
    """An admin that does not look at the answer."""


def run_seed(seed: int) -> World:
    """Run one seed. Raises `Violation` if an invariant is broken."""
    world = World(seed)
    world.run()
    return world
