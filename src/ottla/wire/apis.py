"""The table of APIs: numbers, names, and where the two messages of each are declared.

Messages are imported when they are first asked for, so that a command which speaks to a broker does not pay
for the ninety APIs it never uses.
"""

from enum import IntEnum
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from ottla.wire.declare import spec_of
from ottla.wire.versions import Versions


class ApiKey(IntEnum):
    """The number that opens each request."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    LEADER_AND_ISR = 4
    STOP_REPLICA = 5
    UPDATE_METADATA = 6
    CONTROLLED_SHUTDOWN = 7
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    VOTE = 52
    BEGIN_QUORUM_EPOCH = 53
    END_QUORUM_EPOCH = 54
    DESCRIBE_QUORUM = 55
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    ENVELOPE = 58
    FETCH_SNAPSHOT = 59
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    BROKER_REGISTRATION = 62
    BROKER_HEARTBEAT = 63
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    CONTROLLER_REGISTRATION = 70
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    ASSIGN_REPLICAS_TO_DIRS = 73
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    UPDATE_RAFT_VOTER = 82
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92


REMOVED = frozenset(
    (ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA, ApiKey.CONTROLLED_SHUTDOWN)
)
"""Keys of the ZooKeeper age: reserved, no version of them is valid."""


class Api(NamedTuple):
    """One API: its messages and which versions of them exist."""

    key: ApiKey
    request: type[Any]
    response: type[Any]
    versions: Versions
    flexible: Versions
    listeners: tuple[str, ...]
    latest_version_unstable: bool

    @property
    def stable_versions(self) -> Versions:
        """The versions a broker offers by default."""
        return self.versions._replace(last=self.versions.last - int(self.latest_version_unstable))

    def request_header_version(self, version: int) -> int:
        """Return which request header goes before this version of the request."""
        first, last = self.flexible
        return 2 if first <= version <= last else 1

    def response_header_version(self, version: int) -> int:
        """Return which response header goes before this version of the response.

        ApiVersions is answered with header 0 in all versions: its client does not know yet what we speak.
        """
        first, last = self.flexible
        return 1 if first <= version <= last and self.key is not ApiKey.API_VERSIONS else 0


@cache
def api_of(key: int) -> Api:
    """Return the API with this key. Raises ValueError for a key that no API has."""
    key = ApiKey(key)
    module = import_module(f"ottla.wire.messages.{'removed' if key in REMOVED else key.name.lower()}")
    title = _title(key)
    request = getattr(module, f"{title}Request")
    spec = spec_of(request)
    return Api(
        key, request, getattr(module, f"{title}Response"), spec.versions, spec.flexible, spec.listeners,
        spec.latest_version_unstable,
    )  # fmt: skip


def _title(key: ApiKey) -> str:
    return "".join(word.capitalize() for word in key.name.split("_"))
