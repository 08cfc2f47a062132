"""What a cluster is to be: topics, configs, access rules, quotas and users, as a file of TOML.

    [topics.orders]
    partitions = 3
    replication_factor = 3
    configs = { "retention.ms" = "7d", "cleanup.policy" = "delete" }

    [configs.broker.all]
    "log.retention.ms" = "7d"

    [[rules]]
    principal = "User:alice"
    operation = "write"
    resource = "topic:orders"

    [[quotas]]
    user = "alice"
    producer_byte_rate = 1000000

    [users.alice]
    password_file = "alice.password"

What a file does not name stays as it is. Passwords are never read from a cluster: a user is made if it is not
there, and not changed.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from ottla.cli.failure import Failure
from ottla.cli.quantities import config_value

CONFIG_KINDS: Final = ("broker", "group", "client-metrics")
_SECTIONS: Final = ("topics", "configs", "rules", "quotas", "users")
_WHOM: Final = ("user", "client", "ip")
_RULE: Final = ("principal", "operation", "resource", "permission", "host")


class Topic(NamedTuple):
    """A topic. None: whatever it has, or the cluster's default for a new one."""

    partitions: int | None = None
    replication_factor: int | None = None
    configs: Mapping[str, str] = {}


class AccessRule(NamedTuple):
    """A rule, in the words of `ottla acl`."""

    principal: str
    operation: str
    resource: str
    permission: str = "allow"
    host: str = "*"


class Whom(NamedTuple):
    """Whom quotas bind: names, `default` for those without quotas of their own, None for any."""

    user: str | None = None
    client: str | None = None
    ip: str | None = None


class User(NamedTuple):
    """A user with a password. In a state that was read from a cluster there is no password."""

    mechanism: str = "SCRAM-SHA-512"
    password_file: str | None = None


@dataclass(frozen=True, slots=True)
class State:
    """All of it."""

    topics: Mapping[str, Topic] = field(default_factory=dict)
    configs: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)
    rules: frozenset[AccessRule] = frozenset()
    quotas: Mapping[Whom, Mapping[str, float]] = field(default_factory=dict)
    users: Mapping[str, User] = field(default_factory=dict)
    sections: frozenset[str] = frozenset(_SECTIONS)
    """Of what a file speaks at all: only of that may anything be removed."""


def read_state(path: Path) -> State:
    """Read a file."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Failure(f"cannot read {path}: {error}") from error
    try:
        _check_names("the file", document, _SECTIONS)
        return State(
            {name: _topic(name, one) for name, one in _table("topics", document).items()},
            {
                (kind, name): _texts(f"configs.{kind}.{name}", values)
                for kind, named in _table("configs", document, CONFIG_KINDS).items()
                for name, values in _table(kind, {kind: named}).items()
            },
            frozenset(_rule(one) for one in document.get("rules", ())),
            dict(_quota(one) for one in document.get("quotas", ())),
            {name: _user(name, one, path) for name, one in _table("users", document).items()},
            frozenset(document),
        )
    except (TypeError, ValueError) as error:
        raise Failure(f"{path} is not a state of a cluster: {error}") from error


def _check_names(what: str, given: Any, known: tuple[str, ...]) -> None:
    if not isinstance(given, dict):
        raise TypeError(f"{what} has to be a table")
    for name in given:
        if name not in known:
            from ottla.cli.naming import did_you_mean

            meant = did_you_mean(name, known) or f"; there are {', '.join(known)}"
            raise ValueError(f"{what} has {name!r}{meant}")


def _table(name: str, document: Mapping[str, Any], known: tuple[str, ...] | None = None) -> dict[str, Any]:
    found = document.get(name, {})
    if not isinstance(found, dict):
        raise TypeError(f"{name} has to be a table")
    if known is not None:
        _check_names(name, found, known)
    return found


def _texts(what: str, values: Any) -> dict[str, str]:
    if not isinstance(values, dict):
        raise TypeError(f"{what} has to be a table")
    return {key: config_value(key, _text(f"{what}.{key}", value)) for key, value in values.items()}


def _text(what: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        raise TypeError(f"{what} has to be text or a number")
    return str(value)


def _count(what: str, value: Any) -> int | None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise ValueError(f"{what} is {value!r}: it has to be a number from 1 on")
    return value


def _topic(name: str, given: Any) -> Topic:
    _check_names(f"topic {name}", given, Topic._fields)
    return Topic(
        _count(f"partitions of {name}", given.get("partitions")),
        _count(f"replication_factor of {name}", given.get("replication_factor")),
        _texts(f"configs of {name}", given.get("configs", {})),
    )


def _rule(given: Any) -> AccessRule:
    _check_names("a rule", given, _RULE)
    texts = {name: _text(name, value) for name, value in given.items()}
    principal = texts.get("principal", "")
    if ":" not in principal:
        texts["principal"] = f"User:{principal}"
    from ottla.cli.admin.acl import OPERATIONS, check_resource

    rule = AccessRule(**{**texts, "operation": texts.get("operation", "").lower()})
    check_resource(rule.resource)
    _check_word("the operation", rule.operation, OPERATIONS)
    _check_word("the permission", rule.permission, ("allow", "deny"))
    return rule


def _check_word(what: str, given: str, known: tuple[str, ...]) -> None:
    if given not in known:
        from ottla.cli.naming import did_you_mean

        meant = did_you_mean(given, known) or f"; there are {', '.join(known)}"
        raise ValueError(f"{what} of a rule is {given!r}{meant}")


def _quota(given: Any) -> tuple[Whom, dict[str, float]]:
    from ottla.cli.admin.quota import NAMES

    _check_names("a quota", given, (*_WHOM, *NAMES))
    whom = Whom(**{name: given[name] for name in _WHOM if name in given})
    if not any(whom):
        raise ValueError("a quota needs a user, a client or an ip")
    return whom, {name: _limit(name, value) for name, value in given.items() if name not in _WHOM}


def _limit(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} of a quota is {value!r}: it has to be a number, such as 1000000")
    return float(value)


def _user(name: str, given: Any, path: Path) -> User:
    _check_names(f"user {name}", given, User._fields)
    file = given.get("password_file")
    return User(
        given.get("mechanism", User().mechanism),
        None if file is None else str(path.parent / _text("a file", file)),
    )


def render_state(state: State) -> str:
    """Return a state as a file."""
    import json

    blocks: list[str] = []

    def block(title: str, values: Mapping[str, Any]) -> None:
        lines = [f"{_key(name)} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items()]
        blocks.append("\n".join([title, *lines]))

    for name, topic in sorted(state.topics.items()):
        block(
            f"[topics.{_key(name)}]",
            {"partitions": topic.partitions, "replication_factor": topic.replication_factor},
        )
        if topic.configs:
            block(f"[topics.{_key(name)}.configs]", dict(sorted(topic.configs.items())))
    for (kind, name), values in sorted(state.configs.items()):
        block(f"[configs.{kind}.{_key(name)}]", dict(sorted(values.items())))
    for name, user in sorted(state.users.items()):
        block(f"[users.{_key(name)}]", {"mechanism": user.mechanism})
    for rule in sorted(state.rules):
        block("[[rules]]", rule._asdict())
    for whom, quotas in sorted(state.quotas.items(), key=str):
        named = {name: value for name, value in whom._asdict().items() if value is not None}
        block("[[quotas]]", {**named, **dict(sorted(quotas.items()))})
    return "\n\n".join(blocks) + "\n"


def _key(name: str) -> str:
    import json

    return name if name.isascii() and name.replace("_", "").replace("-", "").isalnum() else json.dumps(name)
