"""Where answers of Ottla differ from those of Apache Kafka 4.3.1, and why. `test_requests.py` reads it.

Each line names an API, the requests that it is about, a place in their answers, what stands there, and the
reason. Every reason was checked by asking both brokers just that. None of these requests is one that a client
library sends: they have values that make no sense.

Beside these: FindCoordinator and AddOffsetsToTxn create the topic of a coordinator if it is missing. Ottla
answers when the topic exists, Apache Kafka at once. The random requests ask for no such topics.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from ottla.wire.apis import ApiKey

NO_ANSWER: Final = ("closed the connection", "did not answer", "UNKNOWN_SERVER_ERROR")
"""What comes from Apache Kafka when a value that makes no sense raises an exception somewhere in it: an
unknown resource type in an ACL, a zero topic id, a null name, a list of no transactions. Ottla answers."""

CONFIG_RESOURCES: Final = frozenset((2, 4, 8, 16, 32))
_LOGGERS: Final = 8


class KnownDifference(NamedTuple):
    """One line of the table. Patterns stand for all of what they are held against."""

    api: ApiKey
    applies_to: Callable[[Any], bool]
    place: str
    of_apache_kafka: str
    of_ottla: str
    reason: str


def _any_request(_ask: Any) -> bool:
    return True


def _is_of_a_replica(ask: Any) -> bool:
    return bool(ask.replica_id >= 0 or ask.replica_state.replica_id >= 0)


def _is_of_a_debugger(ask: Any) -> bool:
    return -2 in (ask.replica_id, ask.replica_state.replica_id)


def _has_unknown_resource_type(ask: Any) -> bool:
    return any(resource.resource_type not in CONFIG_RESOURCES for resource in ask.resources)


def _asks_for_loggers(ask: Any) -> bool:
    return any(resource.resource_type == _LOGGERS for resource in ask.resources)


def _has_impossible_cursor(ask: Any) -> bool:
    return ask.cursor is not None and not 0 <= ask.cursor.partition_index < 3


def _names_a_long_topic(ask: Any) -> bool:
    return any(len(topic.name) > 200 for directory in ask.dirs for topic in directory.topics)


def _names_several_directories(ask: Any) -> bool:
    return len(ask.dirs) > 1


def _has_marker_for_nothing(ask: Any) -> bool:
    return any(not marker.topics for marker in ask.markers)


def _names_no_topic(ask: Any) -> bool:
    return not ask.topics


def _has_several_faults(ask: Any) -> bool:
    return any(
        len(resource.configs) > 1 and any(not 0 <= one.config_operation <= 3 for one in resource.configs)
        for resource in ask.resources
    )


KNOWN_DIFFERENCES: Final = (
    KnownDifference(
        ApiKey.PRODUCE, _any_request, r".*\.error_code",
        "INVALID_RECORD", "INVALID_REQUIRED_ACKS|INVALID_TOPIC_EXCEPTION",
        "The records are no whole batch, and something else is wrong too. Ottla looks at records last.",
    ),
    KnownDifference(
        ApiKey.PRODUCE, _any_request, r".*\.log_start_offset", "-1", r"\d+",
        "Ottla says where the log starts also if the records are no whole batch.",
    ),
    KnownDifference(
        ApiKey.FETCH, _is_of_a_replica, r".*\.error_code", "UNKNOWN_LEADER_EPOCH", "NOT_LEADER_OR_FOLLOWER",
        "A node that is no replica fetches as one, in an unknown epoch. Ottla looks at the replica first.",
    ),
    KnownDifference(
        ApiKey.FETCH, _is_of_a_replica, r".*\.current_leader\.leader_id", "-1", "0",
        "With that other error Ottla also says who leads.",
    ),
    KnownDifference(
        ApiKey.FETCH, _is_of_a_replica, r"\.node_endpoints\.length", "0", "1",
        "With that other error Ottla also says where the leader is.",
    ),
    KnownDifference(
        ApiKey.FETCH, _is_of_a_debugger, r".*\.aborted_transactions", r"\[\]", "None",
        "The replica id -2 reads also what is not committed. Ottla gives no list of what was aborted.",
    ),
    KnownDifference(
        ApiKey.DESCRIBE_CONFIGS, _has_unknown_resource_type, r".*\.error_code", "INVALID_REQUEST", ".*",
        "For Apache Kafka one unknown resource type spoils the whole request. Ottla answers the others.",
    ),
    KnownDifference(
        ApiKey.DESCRIBE_CONFIGS, _has_unknown_resource_type, r".*\.configs\.length", "0", r"\d+",
        "As above: the configs of the other resources are in the answer of Ottla.",
    ),
    KnownDifference(
        ApiKey.DESCRIBE_CONFIGS, _asks_for_loggers, r"\.results\[\]\.configs\.length", r"1\d\d", r"\d\d",
        "Every program has loggers of its own: Apache Kafka nearly 200, Ottla one for each subsystem.",
    ),
    KnownDifference(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS, _has_impossible_cursor, r"\.topics.*|\.next_cursor.*", ".*", ".*",
        "The cursor is before the first partition of a topic, or so far behind it that a sum overflows.",
    ),
    KnownDifference(
        ApiKey.ALTER_REPLICA_LOG_DIRS, _names_a_long_topic, r".*\.error_code",
        "INVALID_TOPIC_EXCEPTION", "LOG_DIR_NOT_FOUND",
        "A topic's name is too long for a directory, and the directory does not exist either.",
    ),
    KnownDifference(
        ApiKey.ALTER_REPLICA_LOG_DIRS, _names_several_directories, r".*\.partitions\.length", r"\d+", r"\d+",
        "A partition is to go to two directories. Apache Kafka answers for one of them.",
    ),
    KnownDifference(
        ApiKey.INCREMENTAL_ALTER_CONFIGS, _has_several_faults, r".*\.error_code",
        "INVALID_CONFIG", "INVALID_REQUEST",
        "Several configs of a resource are wrong, one by an unknown operation. Ottla tells the first one, "
        "Apache Kafka one that its hash map has first.",
    ),
    KnownDifference(
        ApiKey.WRITE_TXN_MARKERS, _has_marker_for_nothing, r"\.markers\.length", r"\d+", r"\d+",
        "Apache Kafka leaves a marker out of its answer if it is for no topic.",
    ),
    KnownDifference(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS, _names_no_topic, r"\.allow_replication_factor_change",
        "True", "False",
        "Apache Kafka says true when no topic was named. Ottla says what the request said.",
    ),
)  # fmt: skip


def is_no_answer(differences: Iterable[tuple[str, Any, Any]]) -> bool:
    """Say whether Apache Kafka failed to answer what Ottla answered."""
    return any(expected in NO_ANSWER for _, expected, _ in differences)


def is_known(api: ApiKey, request: Any, place: str, expected: Any, answered: Any) -> bool:
    """Say whether the table has a reason for a difference."""
    return any(
        known.api is api
        and known.applies_to(request)
        and re.fullmatch(known.place, place)
        and re.fullmatch(known.of_apache_kafka, str(expected))
        and re.fullmatch(known.of_ottla, str(answered))
        for known in KNOWN_DIFFERENCES
    )
