"""What has to be done so that a cluster becomes what a file says: pure, and empty the second time."""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple

from ottla.cli.desired.state import AccessRule, State, Topic, Whom

_STAYS: Final = ("min.insync.replicas",)
"""A cluster with eligible leader replicas sets it by itself, and lets nobody remove it."""


class Action(Enum):
    """What is done to a thing."""

    CREATE = "create"
    CHANGE = "change"
    DELETE = "delete"


class Change(NamedTuple):
    """One thing to do. `values` are what is set; None removes one."""

    action: Action
    kind: str
    name: Any
    values: Mapping[str, Any] = {}

    @property
    def text(self) -> str:
        """Return it as a line for people."""
        values = ", ".join(
            f"remove {name}" if value is None else f"{name}={value}" for name, value in self.values.items()
        )
        return f"{self.action.value} {self.kind} {_name(self.name)}" + (f": {values}" if values else "")


class Impossible(Exception):
    """Something that a file asks for cannot be done in this way."""


def plan(wanted: State, now: State, *, prune: bool = False) -> list[Change]:
    """Return what to do, in an order that works. With `prune`, what a file does not name is removed.

    Only of the sections that the file has anything is removed. Raises `Impossible`.
    """
    changes = [
        *_topics(wanted, now, prune=prune and "topics" in wanted.sections),
        *_configs(wanted, now, prune=prune and "configs" in wanted.sections),
        *_users(wanted, now, prune=prune and "users" in wanted.sections),
        *_rules(wanted, now, prune=prune and "rules" in wanted.sections),
        *_quotas(wanted, now, prune=prune and "quotas" in wanted.sections),
    ]
    order = list(Action)
    return sorted(changes, key=lambda change: order.index(change.action))


def _topics(wanted: State, now: State, *, prune: bool) -> Iterator[Change]:
    for name, topic in sorted(wanted.topics.items()):
        there = now.topics.get(name)
        if there is None:
            facts = {
                key: value for key, value in topic._asdict().items() if value is not None and key != "configs"
            }
            yield Change(Action.CREATE, "topic", name, {**facts, **topic.configs})
            continue
        values = {
            **_more_partitions(name, topic, there),
            **_differ(topic.configs, there.configs, prune=prune),
        }
        if values:
            yield Change(Action.CHANGE, "topic", name, values)
    for name in sorted(now.topics.keys() - wanted.topics.keys()) if prune else ():
        yield Change(Action.DELETE, "topic", name)


def _more_partitions(name: str, topic: Topic, there: Topic) -> dict[str, int]:
    if topic.replication_factor not in (None, there.replication_factor):
        raise Impossible(
            f"topic {name} has {there.replication_factor} replicas, not {topic.replication_factor}: change "
            "that with `ottla cluster reassign`"
        )
    if topic.partitions is None or topic.partitions == there.partitions:
        return {}
    if topic.partitions < (there.partitions or 0):
        raise Impossible(
            f"topic {name} has {there.partitions} partitions, more than {topic.partitions}: they cannot be "
            "removed"
        )
    return {"partitions": topic.partitions}


def _differ(wanted: Mapping[str, str], now: Mapping[str, str], *, prune: bool) -> dict[str, str | None]:
    changed: dict[str, str | None] = {
        key: value for key, value in sorted(wanted.items()) if now.get(key) != value
    }
    return changed | (dict.fromkeys(sorted(now.keys() - wanted.keys())) if prune else {})


def _configs(wanted: State, now: State, *, prune: bool) -> Iterator[Change]:
    places = wanted.configs.keys() | (now.configs.keys() if prune else set())
    for place in sorted(places):
        values = _differ(wanted.configs.get(place, {}), now.configs.get(place, {}), prune=prune)
        values = {key: value for key, value in values.items() if value is not None or key not in _STAYS}
        if values:
            yield Change(Action.CHANGE, "configs", place, values)


def _users(wanted: State, now: State, *, prune: bool) -> Iterator[Change]:
    for name, user in sorted(wanted.users.items()):
        if name not in now.users:
            if user.password_file is None:
                raise Impossible(f"user {name} is not there, and has no password_file to be made with")
            values = {"mechanism": user.mechanism, "password_file": user.password_file}
            yield Change(Action.CREATE, "user", name, values)
    for name in sorted(now.users.keys() - wanted.users.keys()) if prune else ():
        yield Change(Action.DELETE, "user", name, {"mechanism": now.users[name].mechanism})


def _rules(wanted: State, now: State, *, prune: bool) -> Iterator[Change]:
    for rule in sorted(wanted.rules - now.rules):
        yield Change(Action.CREATE, "rule", rule)
    for rule in sorted(now.rules - wanted.rules) if prune else ():
        yield Change(Action.DELETE, "rule", rule)


def _quotas(wanted: State, now: State, *, prune: bool) -> Iterator[Change]:
    for whom in sorted(wanted.quotas.keys() | (now.quotas.keys() if prune else set()), key=str):
        mine, theirs = wanted.quotas.get(whom, {}), now.quotas.get(whom, {})
        values: dict[str, float | None] = {
            name: value for name, value in sorted(mine.items()) if theirs.get(name) != value
        }
        if prune:
            values |= dict.fromkeys(sorted(theirs.keys() - mine.keys()))
        if values:
            yield Change(Action.CHANGE, "quotas", whom, values)


def _name(name: Any) -> str:
    if isinstance(name, AccessRule):
        where = "" if name.host == "*" else f" from {name.host}"
        return f"{name.permission} {name.principal} {name.operation} {name.resource}{where}"
    if isinstance(name, Whom):
        return " ".join(f"{kind} {value}" for kind, value in name._asdict().items() if value is not None)
    return " ".join(name) if isinstance(name, tuple) else str(name)
