"""Talking to a cluster from a command: an admin client for a while, and errors as sentences."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from ottla.cli.failure import Failure

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.client.errors import BrokerError, ClientError

T = TypeVar("T")

INTERRUPTED: Final = 130
"""The exit code of a command that was ended by Ctrl-C, as shells have it."""

PATIENCE: Final = {"default.api.timeout.ms": "15000", "request.timeout.ms": "10000"}
"""Somebody who types a command does not want to wait a minute."""

_NEXT_STEPS: Final = {
    "UNKNOWN_TOPIC_OR_PARTITION": "`ottla topic list` lists the topics",
    "UNKNOWN_TOPIC_ID": "`ottla topic list` lists the topics",
    "TOPIC_ALREADY_EXISTS": "choose another name, or add --if-not-exists",
    "GROUP_ID_NOT_FOUND": "`ottla group list` lists the groups",
    "NON_EMPTY_GROUP": "stop its members first; `ottla group describe` lists them",
    "UNKNOWN_MEMBER_ID": "stop the group's members first; `ottla group describe` lists them",
    "TRANSACTIONAL_ID_NOT_FOUND": "`ottla txn list` lists the transactional ids",
    "INVALID_TOPIC_EXCEPTION": "choose a name of letters, digits, '.', '_' and '-'",
    "INVALID_REPLICATION_FACTOR": "the cluster has too few brokers for that: ask for fewer replicas",
    "SECURITY_DISABLED": "the cluster has no access rules: start it with `ottla up --secure`, or set "
    "authorizer.class.name",
    "DELEGATION_TOKEN_AUTH_DISABLED": "set delegation.token.secret.key, the same on every node",
    "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED": "log in with a password or a certificate, and not by a token",
    "INVALID_CONFIG": "`ottla config get` lists the configs with their values",
}
_UNKNOWN_CONFIG: Final = re.compile(r"Unknown topic config name: (\S+)")
_WRONG_USER: Final = "check sasl.mechanism, sasl.username and sasl.password in --property or in the profile"
_NO_PERMISSION: Final = (
    "ask the administrator for a rule such as `ottla acl add USER {operation} {resource}`, or use another "
    "--profile; `ottla acl why` says which rule decides"
)
_RESOURCES: Final = {
    "TOPIC_AUTHORIZATION_FAILED": "topic:NAME",
    "GROUP_AUTHORIZATION_FAILED": "group:NAME",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "transactional-id:NAME",
    "CLUSTER_AUTHORIZATION_FAILED": "cluster",
}
_OPERATIONS: Final = ("read", "create", "delete", "describe")
"""Verbs of our sentences that are names of rights, too."""


def with_admin(properties: Mapping[str, str], work: "Callable[[Admin], Awaitable[T]]") -> T:
    """Do some work with an admin client."""

    async def run() -> T:
        from ottla.client.admin import Admin
        from ottla.client.errors import BrokerError

        async with Admin(properties={**PATIENCE, **properties}) as admin:
            try:
                return await work(admin)
            except BrokerError as error:
                meant = await _topic_meant(admin, error)
                if meant is None:
                    raise
                raise Failure(f"{error}; did you mean {meant}?") from error

    return run_client(run)


async def _topic_meant(admin: "Admin", error: "BrokerError") -> str | None:
    """Return a topic whose name is like one that was typed and does not exist."""
    from difflib import get_close_matches

    from ottla.client.errors import ClientError

    context = click.get_current_context(silent=True)
    if error.error_code.name != "UNKNOWN_TOPIC_OR_PARTITION" or context is None:
        return None
    try:
        there = [topic.name for topic in await admin.topics.list()]
    except ClientError:
        return None
    for given in context.params.values():
        for word in given if isinstance(given, tuple) else (given,):
            if isinstance(word, str) and word not in there and word in str(error):
                near = get_close_matches(word, there, 1, cutoff=0.7)
                if near:
                    return near[0]
    return None


def run_client(work: Callable[[], Awaitable[T]]) -> T:
    """Run some work of a client. What it raises becomes a sentence."""
    import asyncio

    from ottla.client.errors import ClientError
    from ottla.client.properties import InvalidProperty

    async def run() -> T:
        return await work()

    try:
        return asyncio.run(run())
    except InvalidProperty as error:
        raise Failure(
            f"{error}. It comes from --bootstrap, --property, the environment or the profile"
        ) from error
    except ClientError as error:
        raise Failure(explain(error)) from error
    except KeyboardInterrupt:
        raise click.exceptions.Exit(INTERRUPTED) from None


def explain(error: "ClientError") -> str:
    """Say what went wrong, and what to do next."""
    from ottla.client.errors import AuthenticationFailed, BrokerError, NoBrokerReached

    text = str(error)
    if isinstance(error, AuthenticationFailed):
        return f"{text}; {_WRONG_USER}"
    if isinstance(error, NoBrokerReached):
        return f"{text}. Start a node with `ottla up`, or name another broker with --bootstrap"
    if isinstance(error, BrokerError):
        name = error.error_code.name
        step = _permission(name, text) if name.endswith("AUTHORIZATION_FAILED") else _NEXT_STEPS.get(name)
        if name == "INVALID_CONFIG":
            step = _config_step(text) or step
        elif name == "UNKNOWN_MEMBER_ID" and "cannot leave" in text:
            step = "`ottla group describe` lists the members that there are"
        return f"{text}; {step}" if step else text
    return text


def _config_step(text: str) -> str | None:
    """Return what may have been meant by a config that a cluster does not take."""
    from ottla.cli.naming import did_you_mean
    from ottla.metadata.configs.topic import TopicConfig

    if (unknown := _UNKNOWN_CONFIG.search(text)) is not None:
        return did_you_mean(unknown[1], TopicConfig.keys).removeprefix("; ") or None
    if "Not a number" in text:
        return "write a number, 7d, 1h or 500ms for a config of ms, and 64MB or 1GiB for one of bytes"
    return None


def _permission(error: str, text: str) -> str:
    """Return which rule may be missing. Where the right is not known, it is not named."""
    resource = _RESOURCES.get(error, "RESOURCE")
    if "did not take a batch" in text or "idempotent producer" in text:
        return _NO_PERMISSION.format(operation="write", resource="topic:NAME")
    verb = text.removeprefix("cannot ").partition(" ")[0].strip(":")
    operation = verb if verb in _OPERATIONS else "OPERATION"
    return _NO_PERMISSION.format(operation=operation, resource=resource)


def failed_items(failed: Mapping[Any, "ClientError"]) -> Failure:
    """Return one failure for several things that did not work."""
    return Failure("; ".join(dict.fromkeys(explain(error) for error in failed.values())))
