"""What there is to meet in a cluster, and what no seed can meet, with the reason.

Most of it comes from the code: faults, tables of states, and the errors that handlers name. Errors that a
handler gets from elsewhere are listed here.
"""

import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from itertools import combinations_with_replacement
from typing import Final

from tests.simulation.cluster.faults.kinds import FAULTS, RARE, WIDE_ALONE
from tests.simulation.cluster.meeting.watching import (
    CHANGES,
    ENDING,
    ERROR,
    FAULT,
    GROUP,
    PAIR,
    QUORUM,
    REPLICATION,
    TRANSACTION,
    ending_name,
    pair_of,
    quorum_change,
)
from tests.simulation.meetings import Expected

from ottla.broker.logs.partition import Role
from ottla.broker.serving.handlers import find_handler
from ottla.broker.serving.served_apis import SERVED
from ottla.coordination.group.classic.states import MAY_COME_FROM, GroupState
from ottla.coordination.transaction.ending import VERSION_1, VERSION_2, EpochMatch
from ottla.coordination.transaction.status import FOLLOWERS
from ottla.quorum.raft.transitions import TRANSITIONS

_REPLICATION: Final = (
    *(f"replica: {a.name} > {b.name}" for a in Role for b in Role if a is not b),
    "in-sync grows",
    "in-sync shrinks",
    "in-sync accepted",
    "in-sync rejected",
    *(f"controller: {change}" for change in CHANGES),
    "broker: FENCED > UNFENCED",
    "broker: FENCED > MAY_STOP",
    "broker: UNFENCED > FENCED",
    "broker: UNFENCED > SHUTTING_DOWN",
    "broker: UNFENCED > MAY_STOP",
    "broker: SHUTTING_DOWN > MAY_STOP",
    "member: REGISTERING > FENCED",
    "member: FENCED > MEMBER",
    "member: FENCED > REGISTERING",
    "member: FENCED > LEAVING",
    "member: MEMBER > REGISTERING",
    "member: MEMBER > LEAVING",
    "member: LEAVING > OVER",
    "member: REGISTERING > LEAVING",
    "member: REGISTERING > OVER",
)
_STEPS_OF_GROUPS: Final = {
    "consumer": ("Empty > Reconciling", "Empty > Stable", "Empty > Assigning", "Stable > Assigning",
                 "Stable > Reconciling", "Stable > Empty", "Reconciling > Stable", "Reconciling > Empty",
                 "Reconciling > Assigning", "Assigning > Reconciling", "Assigning > Stable",
                 "Assigning > Empty"),
    "share": ("Empty > Stable", "Stable > Empty"),
    "streams": ("Empty > NotReady", "Empty > Reconciling", "Empty > Stable", "Empty > Assigning",
                "NotReady > Reconciling", "NotReady > Stable", "NotReady > Assigning", "NotReady > Empty",
                "Stable > Assigning", "Stable > Reconciling", "Stable > Empty", "Stable > NotReady",
                "Reconciling > Stable", "Reconciling > Empty", "Reconciling > NotReady",
                "Reconciling > Assigning", "Assigning > Reconciling", "Assigning > Stable",
                "Assigning > Empty", "Assigning > NotReady"),
}  # fmt: skip
"""The states of these follow from members and epochs. A look every 40 ms sees them."""
_GROUP: Final = (
    *(
        f"classic: {a.value} > {b.value}"
        for b, olds in MAY_COME_FROM.items()
        for a in GroupState
        if a in olds
    ),
    *(f"{kind}: {step}" for kind, steps in _STEPS_OF_GROUPS.items() for step in steps),
    "coordinator: LOADING > ACTIVE",
    "coordinator: LOADING > RESIGNED",
    "coordinator: LOADING > FAILED",
    "coordinator: ACTIVE > RESIGNED",
    "coordinator: ACTIVE > FAILED",
    "coordinator: FAILED > RESIGNED",
    "share partition: LOADING > ACTIVE",
    "share partition: LOADING > FENCED",
    "share partition: ACTIVE > FENCED",
)
_ERRORS: Final[Mapping[str, tuple[str, ...]]] = {
    "PRODUCE": (
        "OUT_OF_ORDER_SEQUENCE_NUMBER", "INVALID_PRODUCER_EPOCH", "UNKNOWN_TOPIC_OR_PARTITION",
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND", "REQUEST_TIMED_OUT", "INVALID_TXN_STATE", "UNKNOWN_TOPIC_ID",
        "CONCURRENT_TRANSACTIONS",
    ),
    "FETCH": (
        "OFFSET_OUT_OF_RANGE", "NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID",
        "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "FETCH_SESSION_ID_NOT_FOUND", "KAFKA_STORAGE_ERROR",
        "INVALID_FETCH_SESSION_EPOCH", "OFFSET_NOT_AVAILABLE", "NOT_LEADER_OR_FOLLOWER",
    ),
    "LIST_OFFSETS": ("FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "NOT_LEADER_OR_FOLLOWER",
                     "UNKNOWN_TOPIC_OR_PARTITION"),
    "OFFSET_FOR_LEADER_EPOCH": ("NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH"),
    "METADATA": ("LEADER_NOT_AVAILABLE", "UNKNOWN_TOPIC_OR_PARTITION", "REPLICA_NOT_AVAILABLE"),
    "OFFSET_COMMIT": ("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE",
                      "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS",
                      "STALE_MEMBER_EPOCH"),
    "OFFSET_FETCH": ("COORDINATOR_LOAD_IN_PROGRESS", "UNSTABLE_OFFSET_COMMIT", "STALE_MEMBER_EPOCH",
                     "UNKNOWN_MEMBER_ID"),
    "JOIN_GROUP": ("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "UNKNOWN_MEMBER_ID",
                   "MEMBER_ID_REQUIRED"),
    "SYNC_GROUP": ("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "UNKNOWN_MEMBER_ID",
                   "ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS"),
    "HEARTBEAT": ("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "UNKNOWN_MEMBER_ID",
                  "ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS"),
    "LEAVE_GROUP": ("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "UNKNOWN_MEMBER_ID"),
    "CONSUMER_GROUP_HEARTBEAT": ("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "UNKNOWN_MEMBER_ID",
                                 "FENCED_MEMBER_EPOCH", "COORDINATOR_NOT_AVAILABLE"),
    "SHARE_GROUP_HEARTBEAT": ("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "UNKNOWN_MEMBER_ID",
                              "COORDINATOR_NOT_AVAILABLE"),
    "STREAMS_GROUP_HEARTBEAT": ("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "UNKNOWN_MEMBER_ID",
                                "FENCED_MEMBER_EPOCH"),
    "INIT_PRODUCER_ID": ("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "CONCURRENT_TRANSACTIONS",
                         "COORDINATOR_NOT_AVAILABLE"),
    "ADD_PARTITIONS_TO_TXN": ("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "CONCURRENT_TRANSACTIONS",
                              "INVALID_TXN_STATE", "COORDINATOR_NOT_AVAILABLE",
                              "INVALID_PRODUCER_ID_MAPPING"),
    "ADD_OFFSETS_TO_TXN": ("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "CONCURRENT_TRANSACTIONS"),
    "END_TXN": ("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "CONCURRENT_TRANSACTIONS",
                "INVALID_TXN_STATE", "COORDINATOR_NOT_AVAILABLE"),
    "WRITE_TXN_MARKERS": ("NOT_LEADER_OR_FOLLOWER", "TRANSACTION_COORDINATOR_FENCED", "NOT_ENOUGH_REPLICAS",
                          "UNKNOWN_TOPIC_OR_PARTITION"),
    "TXN_OFFSET_COMMIT": ("INVALID_PRODUCER_EPOCH", "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"),
    "CREATE_TOPICS": ("TOPIC_ALREADY_EXISTS", "REQUEST_TIMED_OUT", "NOT_CONTROLLER"),
    "DELETE_TOPICS": ("UNKNOWN_TOPIC_OR_PARTITION", "REQUEST_TIMED_OUT"),
    "ALTER_PARTITION": ("NOT_CONTROLLER", "FENCED_LEADER_EPOCH", "INVALID_UPDATE_VERSION",
                        "INELIGIBLE_REPLICA", "NEW_LEADER_ELECTED", "STALE_BROKER_EPOCH",
                        "OPERATION_NOT_ATTEMPTED", "UNKNOWN_TOPIC_ID"),
    "BROKER_HEARTBEAT": ("NOT_CONTROLLER", "STALE_BROKER_EPOCH", "REQUEST_TIMED_OUT"),
    "BROKER_REGISTRATION": ("NOT_CONTROLLER", "REQUEST_TIMED_OUT", "DUPLICATE_BROKER_REGISTRATION"),
    "ASSIGN_REPLICAS_TO_DIRS": ("NOT_CONTROLLER", "STALE_BROKER_EPOCH", "NOT_LEADER_OR_FOLLOWER",
                                "UNKNOWN_TOPIC_ID"),
    "ALLOCATE_PRODUCER_IDS": ("NOT_CONTROLLER", "STALE_BROKER_EPOCH", "REQUEST_TIMED_OUT"),
    "VOTE": ("FENCED_LEADER_EPOCH",),
    "BEGIN_QUORUM_EPOCH": ("FENCED_LEADER_EPOCH",),
    "END_QUORUM_EPOCH": ("FENCED_LEADER_EPOCH",),
    "FETCH_SNAPSHOT": ("NOT_LEADER_OR_FOLLOWER", "SNAPSHOT_NOT_FOUND", "FENCED_LEADER_EPOCH"),
    "ADD_RAFT_VOTER": ("DUPLICATE_VOTER", "REQUEST_TIMED_OUT", "NOT_LEADER_OR_FOLLOWER"),
    "REMOVE_RAFT_VOTER": ("VOTER_NOT_FOUND", "REQUEST_TIMED_OUT", "NOT_LEADER_OR_FOLLOWER"),
    "UNREGISTER_BROKER": ("BROKER_ID_NOT_REGISTERED",),
    "SHARE_FETCH": ("UNKNOWN_TOPIC_OR_PARTITION", "INVALID_SHARE_SESSION_EPOCH"),
    "SHARE_ACKNOWLEDGE": ("INVALID_RECORD_STATE",),
}  # fmt: skip
"""Errors that handlers get from elsewhere: from logs, coordinators and the controller."""
_NO_LOGIN: Final = "nobody logs in to a simulated node, and everybody may do everything"
_NOT_ASKED: Final = "no simulated client asks for it, and it changes nothing that is replicated"
_NOT_SUPPORTED: Final = "all simulated nodes have the newest version of each API"
_CANNOT_ERROR: Final[Mapping[str, str]] = {
    "SASL_*": _NO_LOGIN,
    "CREATE_DELEGATION_TOKEN*": _NO_LOGIN,
    "RENEW_DELEGATION_TOKEN*": _NO_LOGIN,
    "EXPIRE_DELEGATION_TOKEN*": _NO_LOGIN,
    "DESCRIBE_DELEGATION_TOKEN*": _NO_LOGIN,
    "DESCRIBE_USER_SCRAM_CREDENTIALS*": _NO_LOGIN,
    "ALTER_USER_SCRAM_CREDENTIALS*": _NO_LOGIN,
    "GET_TELEMETRY_SUBSCRIPTIONS*": _NOT_ASKED,
    "PUSH_TELEMETRY*": _NOT_ASKED,
    "LIST_CONFIG_RESOURCES*": _NOT_ASKED,
    "DESCRIBE_PRODUCERS*": _NOT_ASKED,
    "DESCRIBE_CLIENT_QUOTAS*": _NOT_ASKED,
    "DESCRIBE_ACLS*": _NOT_ASKED,
    "ENVELOPE INVALID_REQUEST": "only a broker of another release could wrap what a controller does not take",
    "ENVELOPE PRINCIPAL_DESERIALIZATION_FAILURE": _NO_LOGIN,
    "TXN_OFFSET_COMMIT NETWORK_EXCEPTION": "nodes check transactions of their own partitions only",
    "METADATA INVALID_REQUEST": "no client of ours asks so",
    "FIND_COORDINATOR INVALID_REQUEST": "no client of ours asks so",
    "API_VERSIONS INVALID_REQUEST": "no client of ours has a name that is not allowed",
    "DELETE_TOPICS TOPIC_DELETION_DISABLED": "deletion of topics is always on",
    "UNREGISTER_BROKER POLICY_VIOLATION": "nothing is taken out of the metadata that is needed",
    "DESCRIBE_CLUSTER MISMATCHED_ENDPOINT_TYPE": "no client of ours asks a controller for brokers",
    "DESCRIBE_CLUSTER UNSUPPORTED_ENDPOINT_TYPE": "no client of ours asks so",
    "LIST_TRANSACTIONS INVALID_REGULAR_EXPRESSION": "no client of ours sends one",
}
_CANNOT_PAIR: Final = {
    # Seeds with one of these have no other fault.
    **{
        pair_of(kind, other): "it happens alone, since it takes long or several steps"
        for kind in (*RARE, *WIDE_ALONE)
        for other in FAULTS
    },
}


def _error_names() -> Iterator[str]:
    for key, served in SERVED.items():
        found = {"NONE", *_ERRORS.get(key.name, ())}
        for listener in served.listeners:
            handler = find_handler(key, listener)
            module = sys.modules[handler.__module__]
            found |= {*re.findall(r"\bErrorCode\.([A-Z_]+)", inspect.getsource(module))}
        yield from (f"{key.name} {error}" for error in sorted(found))


def _why_not_error(name: str) -> str | None:
    _, error = name.split()
    if error.endswith("AUTHORIZATION_FAILED"):
        return _NO_LOGIN
    return _NOT_SUPPORTED if error in ("UNSUPPORTED_VERSION", "SECURITY_DISABLED") else None


def _ending_names() -> Iterator[str]:
    for status, committed in VERSION_1:
        yield ending_name(status.name, committed, EpochMatch.CURRENT.value, raises=False)
    for status, committed in VERSION_2:
        for match in (EpochMatch.CURRENT, EpochMatch.RETRY):
            yield ending_name(status.name, committed, match.value, raises=True)


def expected() -> tuple[Expected, ...]:
    """Return what there is to meet in a cluster."""
    errors = [*_error_names()]
    cannot_error = {**_CANNOT_ERROR, **{name: why for name in errors if (why := _why_not_error(name))}}
    pairs = [pair_of(*pair) for pair in combinations_with_replacement(sorted(FAULTS), 2)]
    return (
        Expected(FAULT, [*FAULTS], {}),
        Expected(PAIR, pairs, _CANNOT_PAIR, is_listed=False),
        Expected(
            QUORUM,
            [quorum_change(*change, step) for change, steps in TRANSITIONS.items() for step in steps],
            {},
        ),
        Expected(REPLICATION, _REPLICATION, {}),
        Expected(GROUP, _GROUP, {}),
        Expected(
            TRANSACTION,
            [f"{old.name} > {new.name}" for old, news in FOLLOWERS.items() for new in sorted(news)],
            {},
        ),
        Expected(ENDING, [*_ending_names()], {}),
        Expected(ERROR, errors, cannot_error),
    )
