"""Every API that this node serves: in which versions, on which listeners, and which rights it asks for.

What is not in this table is neither served nor advertised. A version is advertised because its handler knows
it, not because its message exists. The handlers are in `ottla.broker.apis`, one file for each API. Neither
they nor the messages are imported to read this table: ApiVersions comes before anything else, and would have
to wait for all of them.

`rights` are those that Kafka asks for. A right on the cluster is for the request as a whole; one on topics,
groups or transactional ids is for each that the request names. Where there are several, the handler needs all
of them for what they are about. An API without any says why.
"""

from enum import Enum, auto
from types import MappingProxyType
from typing import Final, NamedTuple

from ottla.security.rights import Operation, Right, on_cluster, on_group, on_topic, on_transactional_id
from ottla.wire.apis import ApiKey
from ottla.wire.versions import Versions, parse_versions


class Listener(Enum):
    """What a listener is for."""

    BROKER = auto()
    CONTROLLER = auto()


class ServedApi(NamedTuple):
    """What is known of an API before its handler is imported."""

    versions: Versions
    rights: tuple[Right, ...]
    # Why it needs no right, if it needs none.
    free_because: str = ""
    listeners: frozenset[Listener] = frozenset((Listener.BROKER,))
    # Answers may hold ranges of files.
    sends_files: bool = False
    # It is served to clients that have not logged in yet.
    is_for_login: bool = False
    # Kafka lists those of telemetry only where metrics of clients are received.
    is_advertised: bool = True
    # Requests may be as large as `socket.request.max.bytes` allows, because they carry records.
    carries_records: bool = False
    # One version more is known, which is not final: `unstable.api.versions.enable` offers it.
    has_unstable: bool = False

    def versions_offered(self, *, with_unstable: bool) -> Versions:
        """Return the versions that a node serves."""
        if not (with_unstable and self.has_unstable):
            return self.versions
        return self.versions._replace(last=self.versions.last + 1)


def _serve(versions: str, *rights: Right, **others: object) -> ServedApi:
    return ServedApi(parse_versions(versions), rights, **others)  # type: ignore[arg-type]


_BOTH: Final = frozenset((Listener.BROKER, Listener.CONTROLLER))
_CONTROLLER: Final = frozenset((Listener.CONTROLLER,))
_TOKENS: Final = "users get their own tokens, and the tokens of others are checked one by one"
_TELEMETRY: Final = "Kafka requires none"
_LOGIN: Final = "it comes before the login"
_READ, _WRITE, _CREATE, _DELETE = Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DELETE
_ALTER, _DESCRIBE, _CLUSTER_ACTION = Operation.ALTER, Operation.DESCRIBE, Operation.CLUSTER_ACTION
_DESCRIBE_CONFIGS, _ALTER_CONFIGS = Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS

SERVED: Final = MappingProxyType(
    {
        ApiKey.PRODUCE: _serve("3-13", on_transactional_id(_WRITE), on_topic(_WRITE), carries_records=True),
        ApiKey.FETCH: _serve("4-18", on_topic(_READ), sends_files=True, listeners=_BOTH),
        ApiKey.LIST_OFFSETS: _serve("1-11", on_topic(_DESCRIBE)),
        ApiKey.METADATA: _serve("0-13", on_topic(_DESCRIBE), on_topic(_CREATE)),
        ApiKey.OFFSET_COMMIT: _serve("2-10", on_group(_READ), on_topic(_READ)),
        ApiKey.OFFSET_FETCH: _serve("1-10", on_group(_DESCRIBE), on_topic(_DESCRIBE)),
        ApiKey.FIND_COORDINATOR: _serve("0-6", on_group(_DESCRIBE), on_transactional_id(_DESCRIBE)),
        ApiKey.JOIN_GROUP: _serve("0-9", on_group(_READ)),
        ApiKey.HEARTBEAT: _serve("0-4", on_group(_READ)),
        ApiKey.LEAVE_GROUP: _serve("0-5", on_group(_READ)),
        ApiKey.SYNC_GROUP: _serve("0-5", on_group(_READ)),
        ApiKey.DESCRIBE_GROUPS: _serve("0-6", on_group(_DESCRIBE)),
        ApiKey.LIST_GROUPS: _serve("0-5", on_group(_DESCRIBE)),
        ApiKey.SASL_HANDSHAKE: _serve("0-1", free_because=_LOGIN, is_for_login=True, listeners=_BOTH),
        ApiKey.API_VERSIONS: _serve("0-4", free_because=_LOGIN, is_for_login=True, listeners=_BOTH),
        ApiKey.CREATE_TOPICS: _serve("2-7", on_topic(_CREATE), on_topic(_DESCRIBE_CONFIGS), listeners=_BOTH),
        ApiKey.DELETE_TOPICS: _serve("1-6", on_topic(_DELETE), on_topic(_DESCRIBE), listeners=_BOTH),
        ApiKey.DELETE_RECORDS: _serve("0-2", on_topic(_DELETE)),
        ApiKey.INIT_PRODUCER_ID: _serve(
            "0-5", on_transactional_id(_WRITE), on_cluster(Operation.IDEMPOTENT_WRITE), has_unstable=True
        ),
        ApiKey.OFFSET_FOR_LEADER_EPOCH: _serve("2-4", on_topic(_DESCRIBE)),
        ApiKey.ADD_PARTITIONS_TO_TXN: _serve("0-5", on_transactional_id(_WRITE), on_topic(_WRITE)),
        ApiKey.ADD_OFFSETS_TO_TXN: _serve("0-4", on_transactional_id(_WRITE), on_group(_READ)),
        ApiKey.END_TXN: _serve("0-5", on_transactional_id(_WRITE)),
        ApiKey.WRITE_TXN_MARKERS: _serve("1-2", on_cluster(_CLUSTER_ACTION)),
        ApiKey.TXN_OFFSET_COMMIT: _serve(
            "0-5", on_transactional_id(_WRITE), on_group(_READ), on_topic(_READ)
        ),
        ApiKey.DESCRIBE_ACLS: _serve("1-3", on_cluster(_DESCRIBE), listeners=_BOTH),
        ApiKey.CREATE_ACLS: _serve("1-3", on_cluster(_ALTER), listeners=_BOTH),
        ApiKey.DELETE_ACLS: _serve("1-3", on_cluster(_ALTER), listeners=_BOTH),
        ApiKey.DESCRIBE_CONFIGS: _serve(
            "1-4",
            on_topic(_DESCRIBE_CONFIGS),
            on_group(_DESCRIBE_CONFIGS),
            on_cluster(_DESCRIBE_CONFIGS),
            listeners=_BOTH,
        ),
        ApiKey.ALTER_CONFIGS: _serve(
            "0-2",
            on_topic(_ALTER_CONFIGS),
            on_group(_ALTER_CONFIGS),
            on_cluster(_ALTER_CONFIGS),
            listeners=_BOTH,
        ),
        ApiKey.ALTER_REPLICA_LOG_DIRS: _serve("1-2", on_cluster(_ALTER)),
        ApiKey.DESCRIBE_LOG_DIRS: _serve("1-5", on_cluster(_DESCRIBE)),
        ApiKey.SASL_AUTHENTICATE: _serve("0-2", free_because=_LOGIN, is_for_login=True, listeners=_BOTH),
        ApiKey.CREATE_PARTITIONS: _serve("0-3", on_topic(_ALTER), listeners=_BOTH),
        ApiKey.CREATE_DELEGATION_TOKEN: _serve("1-3", free_because=_TOKENS, listeners=_BOTH),
        ApiKey.RENEW_DELEGATION_TOKEN: _serve("1-2", free_because=_TOKENS, listeners=_BOTH),
        ApiKey.EXPIRE_DELEGATION_TOKEN: _serve("1-2", free_because=_TOKENS, listeners=_BOTH),
        ApiKey.DESCRIBE_DELEGATION_TOKEN: _serve("1-3", free_because=_TOKENS, listeners=_BOTH),
        ApiKey.DELETE_GROUPS: _serve("0-2", on_group(_DELETE)),
        ApiKey.ELECT_LEADERS: _serve("0-2", on_cluster(_ALTER), listeners=_BOTH),
        ApiKey.INCREMENTAL_ALTER_CONFIGS: _serve(
            "0-1",
            on_topic(_ALTER_CONFIGS),
            on_group(_ALTER_CONFIGS),
            on_cluster(_ALTER_CONFIGS),
            listeners=_BOTH,
        ),
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: _serve("0-1", on_cluster(_ALTER), listeners=_BOTH),
        ApiKey.LIST_PARTITION_REASSIGNMENTS: _serve("0", on_cluster(_DESCRIBE), listeners=_BOTH),
        ApiKey.OFFSET_DELETE: _serve("0", on_group(_DELETE), on_topic(_READ)),
        ApiKey.DESCRIBE_CLIENT_QUOTAS: _serve("0-1", on_cluster(_DESCRIBE_CONFIGS)),
        ApiKey.ALTER_CLIENT_QUOTAS: _serve("0-1", on_cluster(_ALTER_CONFIGS), listeners=_BOTH),
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: _serve("0", on_cluster(_DESCRIBE), listeners=_BOTH),
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _serve("0", on_cluster(_ALTER), listeners=_BOTH),
        ApiKey.DESCRIBE_QUORUM: _serve("0-2", on_cluster(_DESCRIBE), listeners=_BOTH),
        ApiKey.ADD_RAFT_VOTER: _serve("0-1", on_cluster(_ALTER), listeners=_BOTH),
        ApiKey.REMOVE_RAFT_VOTER: _serve("0", on_cluster(_ALTER), listeners=_BOTH),
        ApiKey.UPDATE_FEATURES: _serve("0-2", on_cluster(_ALTER), listeners=_BOTH),
        ApiKey.DESCRIBE_CLUSTER: _serve(
            "0-2", free_because="every client must find the brokers", listeners=_BOTH
        ),
        ApiKey.DESCRIBE_PRODUCERS: _serve("0", on_topic(_READ)),
        ApiKey.UNREGISTER_BROKER: _serve("0", on_cluster(_ALTER), listeners=_BOTH),
        ApiKey.DESCRIBE_TRANSACTIONS: _serve("0", on_transactional_id(_DESCRIBE), on_topic(_DESCRIBE)),
        ApiKey.LIST_TRANSACTIONS: _serve("0-2", on_transactional_id(_DESCRIBE)),
        ApiKey.CONSUMER_GROUP_HEARTBEAT: _serve("0-1", on_group(_READ), on_topic(_DESCRIBE)),
        ApiKey.CONSUMER_GROUP_DESCRIBE: _serve("0-1", on_group(_DESCRIBE), on_topic(_DESCRIBE)),
        ApiKey.SHARE_GROUP_HEARTBEAT: _serve("1", on_group(_READ), on_topic(_DESCRIBE)),
        ApiKey.SHARE_GROUP_DESCRIBE: _serve("1", on_group(_DESCRIBE), on_topic(_DESCRIBE)),
        ApiKey.SHARE_FETCH: _serve("1-2", on_group(_READ), on_topic(_READ), sends_files=True),
        ApiKey.SHARE_ACKNOWLEDGE: _serve("1-2", on_group(_READ), on_topic(_READ)),
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: _serve("0-1", on_group(_DESCRIBE), on_topic(_DESCRIBE)),
        ApiKey.ALTER_SHARE_GROUP_OFFSETS: _serve("0", on_group(_READ), on_topic(_READ)),
        ApiKey.DELETE_SHARE_GROUP_OFFSETS: _serve("0", on_group(_DELETE), on_topic(_READ)),
        ApiKey.INITIALIZE_SHARE_GROUP_STATE: _serve("0", on_cluster(_CLUSTER_ACTION)),
        ApiKey.READ_SHARE_GROUP_STATE: _serve("0", on_cluster(_CLUSTER_ACTION)),
        ApiKey.WRITE_SHARE_GROUP_STATE: _serve("0-1", on_cluster(_CLUSTER_ACTION)),
        ApiKey.DELETE_SHARE_GROUP_STATE: _serve("0", on_cluster(_CLUSTER_ACTION)),
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: _serve("0-1", on_cluster(_CLUSTER_ACTION)),
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: _serve("0", free_because=_TELEMETRY, is_advertised=False),
        ApiKey.PUSH_TELEMETRY: _serve("0", free_because=_TELEMETRY, is_advertised=False),
        ApiKey.LIST_CONFIG_RESOURCES: _serve("0-1", on_cluster(_DESCRIBE_CONFIGS)),
        ApiKey.DESCRIBE_TOPIC_PARTITIONS: _serve("0", on_topic(_DESCRIBE)),
        ApiKey.STREAMS_GROUP_HEARTBEAT: _serve(
            "0", on_group(_READ), on_topic(_DESCRIBE), on_cluster(_CREATE), on_topic(_CREATE)
        ),
        ApiKey.STREAMS_GROUP_DESCRIBE: _serve("0", on_group(_DESCRIBE), on_topic(_DESCRIBE)),
        ApiKey.ALTER_PARTITION: _serve("2-3", on_cluster(_CLUSTER_ACTION), listeners=_CONTROLLER),
        ApiKey.VOTE: _serve("0-2", on_cluster(_CLUSTER_ACTION), listeners=_CONTROLLER),
        ApiKey.BEGIN_QUORUM_EPOCH: _serve("0-1", on_cluster(_CLUSTER_ACTION), listeners=_CONTROLLER),
        ApiKey.END_QUORUM_EPOCH: _serve("0-1", on_cluster(_CLUSTER_ACTION), listeners=_CONTROLLER),
        ApiKey.FETCH_SNAPSHOT: _serve("0-1", on_cluster(_CLUSTER_ACTION), listeners=_CONTROLLER),
        ApiKey.UPDATE_RAFT_VOTER: _serve("0", on_cluster(_CLUSTER_ACTION), listeners=_CONTROLLER),
        ApiKey.ENVELOPE: _serve("0", on_cluster(_CLUSTER_ACTION), listeners=_CONTROLLER),
        ApiKey.BROKER_REGISTRATION: _serve("0-4", on_cluster(_CLUSTER_ACTION), listeners=_CONTROLLER),
        ApiKey.BROKER_HEARTBEAT: _serve("0-2", on_cluster(_CLUSTER_ACTION), listeners=_CONTROLLER),
        ApiKey.ALLOCATE_PRODUCER_IDS: _serve("0", on_cluster(_CLUSTER_ACTION), listeners=_CONTROLLER),
        ApiKey.CONTROLLER_REGISTRATION: _serve("0", on_cluster(_CLUSTER_ACTION), listeners=_CONTROLLER),
        ApiKey.ASSIGN_REPLICAS_TO_DIRS: _serve("0", on_cluster(_CLUSTER_ACTION), listeners=_CONTROLLER),
    }
)
