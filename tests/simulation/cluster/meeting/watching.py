"""Counts what a run meets: faults, pairs of them, changes of state, and errors of each API.

A few functions of the nodes that are called seldom are wrapped for the time of a run. They do what they did,
and nothing is added to the simulation, so a run is the same whether it is counted or not. Errors are counted
by the nodes themselves (`Route`): they are only added up.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from tests.simulation.meetings import Met

from ottla.broker.logs.leading import Leading
from ottla.broker.logs.partition import Partition
from ottla.broker.membership.membership import Membership
from ottla.broker.serving.routes import Route, Routes
from ottla.broker.share.share_partition import SharePartition
from ottla.coordination.group.classic.group import ClassicGroup
from ottla.coordination.runtime.shard import Shard
from ottla.coordination.transaction import decide
from ottla.coordination.transaction.transaction import Transaction
from ottla.quorum.controller.brokers import heartbeat
from ottla.quorum.raft import replica as raft
from ottla.quorum.raft.transitions import TRANSITIONS, StateName, Step
from ottla.testing.simulation.cluster import SimulatedCluster
from ottla.wire.error_code import ErrorCode
from ottla.wire.metadata_records.partitions import PartitionRecord

FAULT: Final = "faults"
PAIR: Final = "faults at the same time"
QUORUM: Final = "changes in the quorum"
REPLICATION: Final = "changes in replication"
GROUP: Final = "changes in groups"
TRANSACTION: Final = "changes in transactions"
ENDING: Final = "ends of transactions"
ERROR: Final = "errors of APIs"


class Meetings:
    """What one run meets."""

    def __init__(self) -> None:
        self.met: Met = Counter()
        self._active: list[str] = []
        self._routes: list[Route] = []
        # The last state of each group, by node, partition and name.
        self._groups: dict[tuple[int, int, str], str] = {}

    @contextmanager
    def fault(self, kind: str) -> Iterator[None]:
        """Count a fault, and those that it comes together with."""
        self.met[FAULT, kind] += 1
        for other in self._active:
            self.met[PAIR, pair_of(kind, other)] += 1
        self._active.append(kind)
        try:
            yield
        finally:
            self._active.remove(kind)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Count for the time being."""
        wrapped: list[tuple[Any, str, Callable[..., Any]]] = [
            (raft, "check_transition", self._watch_quorum),
            (heartbeat, "_next_state", self._watch_brokers),
            (Partition, "_become", self._watch_roles),
            (Leading, "_propose", self._watch_proposals),
            (Leading, "accepted", lambda function: self._counted(function, REPLICATION, "in-sync accepted")),
            (Leading, "rejected", lambda function: self._counted(function, REPLICATION, "in-sync rejected")),
            (ClassicGroup, "move_to", self._watch_classic_groups),
            (Transaction, "changed", self._watch_transactions),
            (decide, "find_ending", self._watch_endings),
            (Routes, "find", self._watch_routes),
        ]
        stated = [
            (Membership, "state", REPLICATION, "member"),
            (Shard, "status", GROUP, "coordinator"),
            (SharePartition, "status", GROUP, "share partition"),
        ]
        before = [(owner, name, vars(owner)[name]) for owner, name, _ in wrapped]
        for (owner, name, watch), (_, _, function) in zip(wrapped, before, strict=True):
            setattr(owner, name, watch(function))
        for cls, name, kind, what in stated:
            setattr(cls, name, _Written(name, self.met, kind, what))
        try:
            yield
        finally:
            for cls, name, _, _ in stated:
                delattr(cls, name)
            for owner, name, function in before:
                setattr(owner, name, function)
            self._add_errors()

    def look(self, cluster: SimulatedCluster) -> None:
        """Compare the states of groups with those of the last look. They follow from members and epochs."""
        for one in cluster.serving:
            assert one.node is not None
            for shard in one.node.broker.groups.coordinator.shards:
                for group_id, group in shard.state.groups.items():
                    kind = group.kind.value
                    if kind != "classic":
                        key, state = (one.node_id, shard.partition, group_id), group.state_name
                        known = self._groups.get(key)
                        if state != known:
                            self._groups[key] = state
                            if known is not None:
                                self.met[GROUP, f"{kind}: {known} > {state}"] += 1

    def partition_changed(self, before: PartitionRecord, after: PartitionRecord) -> None:
        """Count what the controller has made of a partition."""
        for name in changes_of(before, after):
            self.met[REPLICATION, f"controller: {name}"] += 1

    def _counted(self, function: Callable[..., Any], kind: str, name: str) -> Callable[..., Any]:
        def watched(*args: Any, **options: Any) -> Any:
            self.met[kind, name] += 1
            return function(*args, **options)

        return watched

    def _watch_quorum(self, check_transition: Callable[..., None]) -> Callable[..., None]:
        def watched(old: StateName, old_epoch: int, new: StateName, new_epoch: int, **options: Any) -> None:
            check_transition(old, old_epoch, new, new_epoch, **options)
            self.met[QUORUM, quorum_change(old, new, _step(old, old_epoch, new, new_epoch))] += 1

        return watched

    def _watch_brokers(self, next_state: Callable[..., Any]) -> Callable[..., Any]:
        def watched(view: Any, broker: Any, ask: Any, *, is_caught_up: bool) -> Any:
            state = next_state(view, broker, ask, is_caught_up=is_caught_up)
            old = (
                "FENCED"
                if broker.fenced
                else "SHUTTING_DOWN"
                if broker.in_controlled_shutdown
                else "UNFENCED"
            )
            if old != state.name:
                self.met[REPLICATION, f"broker: {old} > {state.name}"] += 1
            return state

        return watched

    def _watch_roles(self, become: Callable[..., None]) -> Callable[..., None]:
        def watched(partition: Partition, role: Any) -> None:
            if role is not partition.role:
                self.met[REPLICATION, f"replica: {partition.role.name} > {role.name}"] += 1
            become(partition, role)

        return watched

    def _watch_proposals(self, propose: Callable[..., None]) -> Callable[..., None]:
        def watched(leading: Leading, in_sync: frozenset[int], is_growing: bool) -> None:
            self.met[REPLICATION, "in-sync grows" if is_growing else "in-sync shrinks"] += 1
            propose(leading, in_sync, is_growing)

        return watched

    def _watch_classic_groups(self, move_to: Callable[..., None]) -> Callable[..., None]:
        def watched(group: ClassicGroup, state: Any, now_ms: int) -> None:
            self.met[GROUP, f"classic: {group.state.value} > {state.value}"] += 1
            move_to(group, state, now_ms)

        return watched

    def _watch_transactions(self, changed: Callable[..., Transaction]) -> Callable[..., Transaction]:
        def watched(transaction: Transaction, **fields: Any) -> Transaction:
            after = changed(transaction, **fields)
            self.met[TRANSACTION, f"{transaction.status.name} > {after.status.name}"] += 1
            return after

        return watched

    def _watch_endings(self, find_ending: Callable[..., Any]) -> Callable[..., Any]:
        def watched(status: Any, committed: bool, match: Any, raises: bool) -> Any:
            self.met[ENDING, ending_name(status.name, committed, match.value, raises)] += 1
            return find_ending(status, committed, match, raises)

        return watched

    def _watch_routes(self, find: Callable[..., Route | None]) -> Callable[..., Route | None]:
        def watched(routes: Routes, api_key: int, version: int) -> Route | None:
            route = find(routes, api_key, version)
            if route is not None:
                self._routes.append(route)
            return route

        return watched

    def _add_errors(self) -> None:
        for route in self._routes:
            name = route.api.key.name
            if route.requests:
                self.met[ERROR, f"{name} NONE"] += route.requests
            for error, times in route.errors.items():
                self.met[ERROR, f"{name} {ErrorCode(error).name}"] += times
        self._routes.clear()


class _Written:
    """Counts what is written to an attribute. It is read as before: only writing goes through this."""

    def __init__(self, name: str, met: Met, kind: str, what: str) -> None:
        self._name = name
        self._met = met
        self._kind = kind
        self._what = what

    def __set__(self, instance: object, value: Any) -> None:
        fields = vars(instance)
        before = fields.get(self._name)
        fields[self._name] = value
        if before is not None and before is not value:
            self._met[self._kind, f"{self._what}: {before.name} > {value.name}"] += 1


def pair_of(kind: str, other: str) -> str:
    """Return the name of a pair of faults, in whichever order they come."""
    return " + ".join(sorted((kind, other)))


def quorum_change(old: StateName, new: StateName, step: Step) -> str:
    """Return the name of a change of state in the quorum."""
    return f"{old.value} > {new.value}, {step.name.lower()} epoch"


def _step(old: StateName, old_epoch: int, new: StateName, new_epoch: int) -> Step:
    """Return the row of the table of states: any later epoch may be the next one, too."""
    if new_epoch == old_epoch:
        return Step.SAME
    is_next = new_epoch == old_epoch + 1 and Step.NEXT in TRANSITIONS[old, new]
    return Step.NEXT if is_next else Step.LATER


def ending_name(status: str, committed: bool, match: str, raises: bool) -> str:
    """Return the name of a cell of the table of EndTxn."""
    return f"v{2 if raises else 1} {status} {'commit' if committed else 'abort'}, {match} epoch"


def changes_of(before: PartitionRecord, after: PartitionRecord) -> Iterator[str]:
    """Give what is new in a partition."""
    was_eligible, is_eligible = (set(one.eligible_leader_replicas or ()) for one in (before, after))
    if after.leader != before.leader:
        yield _election(before, after.leader)
    found = {
        "more are in sync": len(after.isr) > len(before.isr),
        "fewer are in sync": len(after.isr) < len(before.isr),
        "one becomes eligible": not is_eligible <= was_eligible,
        "one is eligible no more": not was_eligible <= is_eligible | set(after.isr),
        "a move begins": bool(after.adding_replicas and not before.adding_replicas),
        "a move ends": bool(before.adding_replicas and not after.adding_replicas),
        "a replica lies in another directory": after.replicas == before.replicas
        and after.directories != before.directories,
    }
    yield from (name for name, is_so in found.items() if is_so)


def _election(before: PartitionRecord, leader: int) -> str:
    if leader < 0:
        return "nobody leads"
    if leader in before.isr:
        return "one in sync is elected"
    if leader in (before.eligible_leader_replicas or ()):
        return "an eligible one is elected"
    if leader in (before.last_known_elr or ()):
        return "the last known one is elected"
    return "one that is not in sync is elected"


CHANGES: Final = (
    "nobody leads",
    "one in sync is elected",
    "an eligible one is elected",
    "the last known one is elected",
    "one that is not in sync is elected",
    "more are in sync",
    "fewer are in sync",
    "one becomes eligible",
    "one is eligible no more",
    "a move begins",
    "a move ends",
    "a replica lies in another directory",
)
"""All that `changes_of` may give."""
