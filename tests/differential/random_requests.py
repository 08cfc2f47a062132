"""Requests of any API and version, made at random from the declarations of the messages.

Most fields get a value that means something to a broker (the name of a topic it has, a partition of it, a key
of a config), some an odd one (no name, a negative number, null). So most requests get some way into a handler
before they fail, if they do.

Ids of topics differ between brokers. A request has stand-ins for them: `with_ids` puts the real ones in.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

from tests.support.data_plane import batch_of

from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.apis import Api, ApiKey
from ottla.wire.layout import Field, layout_of

TOPICS: Final = ("any-one", "any-three", "any-compacted")
STAND_INS: Final = {Uuid(b"%-16d" % number): name for number, name in enumerate(TOPICS)}
UNKNOWN_ID: Final = Uuid(b"nobody has it...")

_TOPIC: Final = (*TOPICS, *TOPICS, "no-such-topic", "", "bad name", "x" * 250, "__consumer_offsets")
_PARTITION: Final = (0, 0, 0, 1, 2, 3, -1, 2**31 - 1)
_GROUP: Final = ("any-group", "other-group", "empty-group", "")
_EPOCH: Final = (-1, -1, 0, 0, 1, -2, 100, 2**31 - 1)
_CONFIG: Final = (
    "retention.ms",
    "cleanup.policy",
    "segment.bytes",
    "no.such.config",
    "",
    "max.message.bytes",
)

_STRINGS: Final[Mapping[str, Sequence[str]]] = {
    "topic": _TOPIC,
    "topic_name": _TOPIC,
    "topic_names": _TOPIC,
    "topics_names": _TOPIC,
    "group_id": _GROUP,
    "groups": _GROUP,
    "group_ids": _GROUP,
    "groups_names": _GROUP,
    "coordinator_keys": (*_GROUP, "any-group:id:0"),
    "key": (*_GROUP, "producer_byte_rate", "request_percentage", "nonsense"),
    "transactional_id": ("any-transaction", "other-transaction", ""),
    "transactional_ids": ("any-transaction", "other-transaction", ""),
    "member_id": ("", "", "no-such-member"),
    "group_instance_id": ("an-instance", ""),
    "resource_name": (*TOPICS, "0", "", "1", "no-such", "any-group"),
    "resource_name_filter": (*TOPICS, ""),
    "configuration_keys": _CONFIG,
    "value": ("1", "100000", "-1", "nonsense", "", "compact"),
    "entity_type": ("user", "client-id", "ip", "nonsense", ""),
    "entity_name": ("alice", "app", "127.0.0.1", ""),
    "match": ("alice", "app", ""),
    "users": ("alice", "nobody", ""),
    "user": ("alice", "nobody", ""),
    "principal": ("User:alice", "User:*", "nonsense", ""),
    "host": ("*", "127.0.0.1", ""),
    "principal_filter": ("User:alice", ""),
    "host_filter": ("*", ""),
    "path": ("/no/such/directory", ""),
    "state_filters": ("Ongoing", "Empty", "Nonsense"),
    "states_filter": ("Stable", "Empty", "Nonsense"),
    "types_filter": ("classic", "consumer", "nonsense"),
    "transactional_id_pattern": ("any.*", "", "["),
    "protocol_type": ("consumer", ""),
    "protocol_name": ("range", ""),
    "rack_id": ("", "a"),
    "client_software_name": ("tests", "", "bad name!"),
    "client_software_version": ("1.0", ""),
    "feature": ("metadata.version", "kraft.version", "group.version", "nonsense", ""),
    "server_assignor": ("uniform", "range", "nonsense"),
    "subscribed_topic_regex": ("any.*", ""),
    "subscribed_topic_names": _TOPIC,
    "cluster_id": ("nonsense",),
}
_INTEGERS: Final[Mapping[str, Sequence[int]]] = {
    "partition": _PARTITION,
    "partition_index": _PARTITION,
    "partition_id": _PARTITION,
    "partition_indexes": _PARTITION,
    "partitions": _PARTITION,
    "broker_ids": (0, 0, 0, 1, -1),
    "replicas": (0, 0, 0, 1, -1),
    "broker_id": (1, 9, -1),  # Nobody unregisters the broker that is asked.
    "replica_id": (-1, -1, -1, 0, 1, -2),
    "num_partitions": (1, 2, -1, 0, -2),
    "replication_factor": (1, 1, -1, 0, 2, -2),
    "partition_count": (1, 2, 3, 4, 5, 0, -1),
    "acks": (-1, 1, 1, 2, -2),
    "timeout_ms": (10_000, 20_000),  # What takes longer than asked is cut off at a moment of its own.
    "max_wait_ms": (0, 1, 20),
    "min_bytes": (0, 1),
    "session_timeout_ms": (1_000_000, 0, 2**31 - 1),
    "rebalance_timeout_ms": (1_000_000, 0, -1),
    "transaction_timeout_ms": (60_000, 0, -1, 2**31 - 1),
    "timestamp": (-1, -2, -3, -4, -5, -6, -7, 0, 2**40, 2**62),
    "fetch_offset": (0, 1, 2, 100, -1),
    "offset": (0, 1, -1, -2, 100),
    "committed_offset": (0, 5, -1, -2),
    "isolation_level": (0, 1),
    "session_id": (0, 0, 0, 123_456),
    "session_epoch": (-1, -1, 0, 1),
    "generation_id": (-1, 0, 1),
    "generation_id_or_member_epoch": (-1, -1, 0, 1),
    "member_epoch": (-1, 0, 1, -2, 5),
    "producer_id": (-1, 12_345),
    "producer_epoch": (-1, 0, 1, 32_767),
    "key_type": (0, 1, 2, 3, -1),
    "resource_type": (2, 2, 4, 8, 16, 32, 1, 0, 3, 99, -1),
    "resource_types": (2, 4, 8, 16, 32, 0, 99),
    "resource_type_filter": (1, 2, 3, 4, 99),
    "election_type": (0, 1, 2),
    "config_operation": (0, 1, 2, 3, 9),
    "mechanism": (1, 2, 0, 9),
    "iterations": (4096, 8192, 1, 20_000, -1),
    "match_type": (0, 1, 2, 9),
    "max_bytes": (2**20, 0),
    "partition_max_bytes": (2**20, 100, 0),
    "response_partition_limit": (2000, 1, 0, -1),
    "upgrade_type": (1, 2, 3, 0),
    "max_version_level": (0, 1, 25, -1, 1000),
    "endpoint_type": (1, 2, 0),
}
_ODD_INTEGERS: Final = (-1, 0, 0, 1, 1, 2, 3, 5)
_BOOLEANS: Final = {"validate_only": (True,), "allow_auto_topic_creation": (False,)}


_SUBSCRIPTION: Final = bytes.fromhex("0000 00000001 0007") + b"any-one" + bytes.fromhex("00000000")


class RequestMaker:
    """Makes requests at random, from a seed."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._random = Random(seed)
        self._names = 0

    def turn_to(self, api: Api, version: int) -> None:
        """Begin with the requests of a version. They are the same, whatever else was or will be made."""
        self._random = Random(f"{self._seed} {api.key.name} {version}")

    def make(self, api: Api, version: int) -> Any:
        """Return a request that `version` can carry."""
        return self._struct(api.request, api.key, version)

    def _struct(self, cls: type[Any], key: ApiKey, version: int) -> Any:
        values = [self._field(cls, field, key, version) for field in layout_of(cls)]
        return tuple.__new__(cls, values)

    def _field(self, cls: type[Any], field: Field, key: ApiKey, version: int) -> Any:
        chance = self._random.random()
        if version not in field.versions or (field.tag is not None and chance < 0.8):
            return field.default
        if version in field.nullable and chance < 0.2 and field.kind != "records":
            # Apache Kafka never answers a produce request with null records.
            return None
        if not field.is_array:
            return self._value(cls, field, key, version)
        # No broker says what is to happen if a thing is named twice, or a topic without a partition.
        length = self._random.choice((1, 1, 1, 2, 3) if "partition" in field.name else (1, 1, 1, 1, 0, 2, 3))
        values = [self._value(cls, field, key, version) for _ in range(length)]
        return tuple({_name_of(value): value for value in values}.values())

    def _value(self, cls: type[Any], field: Field, key: ApiKey, version: int) -> Any:
        if field.struct is not None:
            return self._struct(field.struct, key, version)
        return self._random.choice(self._choices(cls, field, key))

    def _choices(self, cls: type[Any], field: Field, key: ApiKey) -> Sequence[Any]:
        match field.kind:
            case "bool":
                # What would change much is only checked, or not done.
                return _BOOLEANS.get(field.name, (True, False))
            case "string":
                return self._strings(cls, field.name, key)
            case "uuid":
                known = () if key is ApiKey.DELETE_TOPICS else (*STAND_INS, *STAND_INS)
                return (*known, UNKNOWN_ID, ZERO_UUID)
            case "bytes":
                # Apache Kafka never answers if a member's subscription makes no sense.
                return (_SUBSCRIPTION,) if field.name == "metadata" else (b"", b"bytes", b"b" * 32)
            case "records":
                return _batches()
            case "uint16":
                return (0, 9092, 65_535)
            case "float64":
                return (0.0, 1.0, 1e9, -1.0)
            case _ if key is ApiKey.WRITE_TXN_MARKERS and field.name == "producer_id":
                # Markers change what a partition knows of a producer, if they are written at all.
                return (-1, 67_890)
            case _:
                return _INTEGERS.get(field.name, _ODD_INTEGERS)

    def _strings(self, cls: type[Any], name: str, key: ApiKey) -> Sequence[str]:
        if key in (ApiKey.JOIN_GROUP, ApiKey.CONSUMER_GROUP_HEARTBEAT) and name == "group_id":
            # A member that never comes back would make the next one wait.
            self._names += 1
            return (f"new-group-{self._names}", f"new-group-{self._names}", "")
        if key is ApiKey.METADATA:
            # Old versions create what they are asked for.
            return tuple(topic for topic in _TOPIC if topic != "no-such-topic")
        if key is ApiKey.DELETE_TOPICS:
            # The others are needed.
            return ("no-such-topic", "", "bad name", "x" * 250)
        if name in ("name", "topics", "topic_name") and _is_about_topics(cls, name, key):
            return _TOPIC
        if name == "name":
            return (*_CONFIG, "alice", "range")
        return _STRINGS.get(name, ("", "nonsense"))


def _name_of(value: Any) -> Any:
    """Return what a thing in a list is known by: its name or number comes first, or an id after it."""
    if not hasattr(type(value), "__wire_fields__"):
        return value if not isinstance(value, memoryview) else id(value)
    parts = [part for part in value[:2] if isinstance(part, str | Uuid)]
    return (value[0], *parts)


def _is_about_topics(cls: type[Any], name: str, key: ApiKey) -> bool:
    return name == "topics" or "Topic" in cls.__name__ or key is ApiKey.METADATA


def _batches() -> Sequence[memoryview]:
    good = batch_of(b"value", key=b"key")
    damaged = bytearray(good)
    damaged[-1] ^= 1
    return tuple(
        memoryview(bytearray(batch)) for batch in (good, good, batch_of(b"a", b"b"), damaged, b"", good[:-3])
    )


def with_ids(value: Any, ids: Mapping[str, Uuid]) -> Any:
    """Return a request with the ids that a broker gave its topics."""
    if isinstance(value, Uuid):
        name = STAND_INS.get(value)
        return value if name is None else ids[name]
    if isinstance(value, tuple):
        parts = [with_ids(part, ids) for part in value]
        return tuple.__new__(type(value), parts) if hasattr(type(value), "__wire_fields__") else tuple(parts)
    return value
