"""What a newcomer is told when the first try does not work: what happened, where, and what to do next."""

import errno
import os

import pytest

from ottla.broker.lifecycle.startup import NodeFailure
from ottla.cli.cluster import explain
from ottla.cli.nodes.up import next_step
from ottla.client.errors import AuthenticationFailed, BrokerError, NoBrokerReached
from ottla.wire.error_code import ErrorCode


def failure(cause: OSError) -> NodeFailure:
    """Return what `run_node` raises, with something between it and its cause."""
    between = RuntimeError("between")
    between.__cause__ = cause
    error = NodeFailure("the node cannot start")
    error.__cause__ = between
    return error


@pytest.mark.parametrize(
    ("number", "step"),
    [
        (
            errno.EACCES,
            "; get the permission, or choose another directory with --data or another port with --port",
        ),
        (
            errno.EPERM,
            "; get the permission, or choose another directory with --data or another port with --port",
        ),
        (errno.EADDRINUSE, "; stop the process that uses the port, or choose another with --port"),
        (errno.ENOSPC, ""),
    ],
)
def test_a_node_that_cannot_start_says_what_to_do(number: int, step: str) -> None:
    assert next_step(failure(OSError(number, os.strerror(number)))) == step


def test_each_refusal_of_a_cluster_says_what_to_do() -> None:
    assert explain(NoBrokerReached("no broker answers")) == (
        "no broker answers. Start a node with `ottla up`, or name another broker with --bootstrap"
    )
    assert explain(AuthenticationFailed("b:1 refused user 'ann'")).startswith(
        "b:1 refused user 'ann'; check sasl.mechanism, sasl.username and sasl.password"
    )
    refused = BrokerError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "cannot read")
    assert explain(refused).endswith(
        "; ask the administrator for a rule such as `ottla acl add USER read topic:NAME`, or use another "
        "--profile; `ottla acl why` says which rule decides"
    )
    open_to_all = BrokerError(ErrorCode.SECURITY_DISABLED, "cannot list the access rules")
    assert "start it with `ottla up --secure`" in explain(open_to_all)
    unwritten = BrokerError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "t-0 did not take a batch")
    assert "acl add USER write topic:NAME" in explain(unwritten)
    unknown = BrokerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "broker 1 cannot list its groups")
    assert "acl add USER OPERATION cluster" in explain(unknown), "which right it is, nobody has said"


@pytest.mark.parametrize(
    ("error_code", "step"),
    [
        (ErrorCode.INVALID_TOPIC_EXCEPTION, "choose a name of letters, digits, '.', '_' and '-'"),
        (
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "the cluster has too few brokers for that: ask for fewer replicas",
        ),
        (ErrorCode.INVALID_CONFIG, "`ottla config get` lists the configs with their values"),
    ],
)
def test_a_refused_topic_says_what_to_do(error_code: ErrorCode, step: str) -> None:
    assert explain(BrokerError(error_code, "cannot create")) == f"cannot create: {error_code.name}; {step}"
