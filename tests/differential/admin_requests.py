"""Requests that change or describe metadata, good and bad, in the order in which they are to be sent.

Each is sent in some versions to Apache Kafka and to ourselves, and both have to give the same answer, but for
what nobody can foresee: ids, times, epochs, the order of unordered lists, and the wording of messages.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.declare import replace
from ottla.wire.messages import (
    alter_client_quotas,
    alter_configs,
    alter_partition_reassignments,
    alter_user_scram_credentials,
    create_acls,
    create_delegation_token,
    create_partitions,
    create_topics,
    delete_acls,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_delegation_token,
    describe_quorum,
    describe_user_scram_credentials,
    elect_leaders,
    expire_delegation_token,
    incremental_alter_configs,
    list_partition_reassignments,
    renew_delegation_token,
    sasl_authenticate,
    sasl_handshake,
    unregister_broker,
    update_features,
)

PREFIX = "admin-answers"
OTHER_ID = Uuid(b"0123456789abcdef")


class Attempt(NamedTuple):
    """A request, and the versions to send it in: all that exist, or some."""

    name: str
    request: Any
    versions: Sequence[int] | None = None


def attempts() -> Iterator[Attempt]:
    """Give all requests in order."""
    yield from _create_topics()
    yield from _create_partitions()
    yield from _configs()
    yield from _quotas()
    yield from _scram()
    yield from _acls()
    yield from _logins()
    yield from _elections()
    yield from _reassignments()
    yield from _features()
    yield from _cluster()
    yield from _delete_topics()


def topic(name: str) -> str:
    """Return a name that no other test uses."""
    return f"{PREFIX}-{name}"


def _new(
    name: str,
    partitions: int = -1,
    replicas: int = -1,
    assignments: Sequence[tuple[int, tuple[int, ...]]] = (),
    configs: Sequence[tuple[str, str | None]] = (),
) -> create_topics.CreatableTopic:
    return create_topics.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=tuple(
            create_topics.CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in assignments
        ),
        configs=tuple(create_topics.CreatableTopicConfig(name=key, value=value) for key, value in configs),
    )


def _create(name: str, *topics: create_topics.CreatableTopic, validate_only: bool = False) -> Attempt:
    # A topic can be made once, so what succeeds is sent in one version.
    request = create_topics.CreateTopicsRequest(topics=topics, validate_only=validate_only)
    return Attempt(f"create {name}", request, None if validate_only else (7,))


def _create_topics() -> Iterator[Attempt]:
    yield _create("one", _new(topic("plain"), 3, 1))
    yield _create("defaults", _new(topic("defaults")))
    yield _create("manual", _new(topic("manual"), assignments=[(0, (0,)), (1, (0,))]))
    yield _create(
        "with configs",
        _new(topic("configs"), 1, 1, configs=[("retention.ms", "1000"), ("cleanup.policy", "compact")]),
    )
    yield _create("again", _new(topic("plain"), 3, 1))
    yield _create("dots", _new(topic("a.b"), 1, 1))
    yield _create("colliding", _new(topic("a_b"), 1, 1))
    yield _create("two, one bad", _new(topic("second"), 1, 1), _new("bad name", 1, 1))
    yield _create("twice in one request", _new(topic("twice"), 1, 1), _new(topic("twice"), 2, 1))
    bad = {
        "empty name": _new("", 1, 1),
        "dot": _new(".", 1, 1),
        "two dots": _new("..", 1, 1),
        "long": _new("x" * 250, 1, 1),
        "longest": _new("x" * 249, 1, 1),
        "no partitions": _new(topic("bad"), 0, 1),
        "negative partitions": _new(topic("bad"), -2, 1),
        "no replicas": _new(topic("bad"), 1, 0),
        "negative replicas": _new(topic("bad"), 1, -2),
        "too many replicas": _new(topic("bad"), 1, 2),
        "no partitions and no replicas": _new(topic("bad"), 0, 0),
        "too many partitions": _new(topic("bad"), 10_001, 1),
        "as many as allowed": _new(topic("bad"), 10_000, 1),
        "unknown config": _new(topic("bad"), 1, 1, configs=[("no.such.config", "1")]),
        "bad value": _new(topic("bad"), 1, 1, configs=[("retention.ms", "many")]),
        "null value": _new(topic("bad"), 1, 1, configs=[("retention.ms", None)]),
        "bad config before bad placement": _new(topic("bad"), 1, 9, configs=[("no.such.config", "1")]),
        "manual with partitions": _new(topic("bad"), 1, -1, assignments=[(0, (0,))]),
        "manual with replicas": _new(topic("bad"), -1, 1, assignments=[(0, (0,))]),
        "manual with unknown broker": _new(topic("bad"), assignments=[(0, (9,))]),
        "manual with a broker twice": _new(topic("bad"), assignments=[(0, (0, 0))]),
        "manual with no broker": _new(topic("bad"), assignments=[(0, ())]),
        "manual with a gap": _new(topic("bad"), assignments=[(0, (0,)), (2, (0,))]),
        "manual not from 0": _new(topic("bad"), assignments=[(1, (0,))]),
        "metadata topic": _new("__cluster_metadata", 1, 1),
        "exists": _new(topic("plain"), 1, 1),
        "exists, with a bad config": _new(topic("plain"), 1, 1, configs=[("no.such.config", "1")]),
        "metadata topic, badly": _new("__cluster_metadata", 0, 0),
        "min isr": _new(topic("bad"), 1, 1, configs=[("min.insync.replicas", "1")]),
    }
    for name, new in bad.items():
        yield _create(name, new, validate_only=True)
    yield _create("nothing", validate_only=True)


def _grow(
    name: str, count: int, assignments: Sequence[tuple[int, ...]] | None = None
) -> create_partitions.CreatePartitionsTopic:
    return create_partitions.CreatePartitionsTopic(
        name=name,
        partition_count=count,
        assignments=None
        if assignments is None
        else tuple(
            create_partitions.CreatePartitionsAssignment(broker_ids=brokers) for brokers in assignments
        ),
    )


def _create_partitions() -> Iterator[Attempt]:
    def attempt(
        name: str, *topics: create_partitions.CreatePartitionsTopic, only_check: bool = True
    ) -> Attempt:
        request = create_partitions.CreatePartitionsRequest(
            topics=topics, timeout_ms=10_000, validate_only=only_check
        )
        return Attempt(f"partitions {name}", request, None if only_check else (3,))

    plain = topic("plain")
    yield attempt("grow", _grow(plain, 5), only_check=False)
    yield attempt("grow manually", _grow(plain, 6, [(0,)]), only_check=False)
    yield attempt("same", _grow(plain, 6))
    yield attempt("less", _grow(plain, 2))
    yield attempt("negative", _grow(plain, -1))
    yield attempt("more", _grow(plain, 9))
    yield attempt("unknown", _grow("nope", 2))
    yield attempt("twice", _grow(plain, 9), _grow(plain, 10))
    yield attempt("too few assignments", _grow(plain, 9, [(0,)]))
    yield attempt("too many assignments", _grow(plain, 7, [(0,), (0,)]))
    yield attempt("unknown broker", _grow(plain, 7, [(9,)]))
    yield attempt("other replication factor", _grow(plain, 7, [(0, 0)]))
    yield attempt("no broker", _grow(plain, 7, [()]))
    yield attempt("two, one bad", _grow(plain, 7), _grow("nope", 2))


def _configs() -> Iterator[Attempt]:
    def change(
        resource_type: int, name: str, *configs: tuple[str, int, str | None], only_check: bool = False
    ) -> Any:
        resource = incremental_alter_configs.AlterConfigsResource(
            resource_type=resource_type,
            resource_name=name,
            configs=tuple(
                incremental_alter_configs.AlterableConfig(name=key, config_operation=operation, value=value)
                for key, operation, value in configs
            ),
        )
        return incremental_alter_configs.IncrementalAlterConfigsRequest(
            resources=(resource,), validate_only=only_check
        )

    plain = topic("plain")
    yield Attempt("config of unknown topic", change(2, "nope", ("retention.ms", 0, "1")))
    yield Attempt("bad config of unknown topic", change(2, "nope", ("no.such", 0, "1")))
    yield Attempt("topic config", change(2, plain, ("retention.ms", 0, "100000")))
    yield Attempt("topic config checked", change(2, plain, ("retention.ms", 0, "-5"), only_check=True))
    yield Attempt("topic config removed", change(2, plain, ("retention.ms", 1, None)))
    yield Attempt("unknown broker", change(4, "77", ("log.retention.ms", 0, "1")))
    yield Attempt("unknown type", change(99, "x", ("a", 0, "1")))
    twice = change(2, plain, ("retention.ms", 0, "1"))
    yield Attempt(
        "same resource twice",
        incremental_alter_configs.IncrementalAlterConfigsRequest(
            resources=twice.resources * 2, validate_only=False
        ),
    )
    for name in (plain, "nope"):
        resource = alter_configs.AlterConfigsResource(
            resource_type=2,
            resource_name=name,
            configs=(alter_configs.AlterableConfig(name="max.message.bytes", value="1000"),),
        )
        yield Attempt(
            f"replace configs of {name}",
            alter_configs.AlterConfigsRequest(resources=(resource,), validate_only=False),
        )


def _quotas() -> Iterator[Attempt]:
    def alter(
        name: str,
        *entries: tuple[Sequence[tuple[str, str | None]], Sequence[tuple[str, float, bool]]],
        only_check: bool = False,
    ) -> Attempt:
        request = alter_client_quotas.AlterClientQuotasRequest(
            entries=tuple(
                alter_client_quotas.QuotaAlteration(
                    entity=tuple(
                        alter_client_quotas.EntityData(entity_type=kind, entity_name=entity)
                        for kind, entity in entity_parts
                    ),
                    ops=tuple(
                        alter_client_quotas.QuotaOperation(key=key, value=value, remove=remove)
                        for key, value, remove in operations
                    ),
                )
                for entity_parts, operations in entries
            ),
            validate_only=only_check,
        )
        return Attempt(f"quotas {name}", request)

    user = [("user", topic("alice"))]
    rate = ("producer_byte_rate", 1000.0, False)
    yield alter("user", (user, [rate]))
    yield alter(
        "user and client", ([*user, ("client-id", None)], [rate, ("request_percentage", 12.5, False)])
    )
    yield alter("default user", ([("user", None)], [("consumer_byte_rate", 5000.0, False)]), only_check=True)
    yield alter("ip", ([("ip", "127.0.0.7")], [("connection_creation_rate", 10.0, False)]))
    yield alter("removed", (user, [("consumer_byte_rate", 0.0, True)]))
    bad: dict[str, tuple[Sequence[tuple[str, str | None]], Sequence[tuple[str, float, bool]]]] = {
        "no entity": ([], [rate]),
        "unknown type": ([("planet", "mars")], [rate]),
        "empty name": ([("user", "")], [rate]),
        "ip and user": ([("ip", "127.0.0.1"), ("user", "u")], [("connection_creation_rate", 1.0, False)]),
        "bad ip": ([("ip", "1.2.3.4.5.6!")], [("connection_creation_rate", 1.0, False)]),
        "wrong key for user": (user, [("connection_creation_rate", 1.0, False)]),
        "wrong key for ip": ([("ip", "127.0.0.1")], [rate]),
        "unknown key": (user, [("no_such_rate", 1.0, False)]),
        "zero": (user, [("producer_byte_rate", 0.0, False)]),
        "negative": (user, [("producer_byte_rate", -1.0, False)]),
        "fraction": (user, [("producer_byte_rate", 1.5, False)]),
        "too large": (user, [("producer_byte_rate", 1e19, False)]),
        "too large for an int": ([("ip", "127.0.0.1")], [("connection_creation_rate", 3e9, False)]),
        "key twice": (user, [rate, rate]),
        "removing an unknown key": (user, [("no_such_rate", 0.0, True)]),
    }
    for name, entry in bad.items():
        yield alter(name, entry, only_check=True)

    def describe(name: str, *parts: tuple[str, int, str | None], strict: bool = False) -> Attempt:
        request = describe_client_quotas.DescribeClientQuotasRequest(
            components=tuple(
                describe_client_quotas.ComponentData(entity_type=kind, match_type=match_type, match=match)
                for kind, match_type, match in parts
            ),
            strict=strict,
        )
        return Attempt(f"describe quotas {name}", request)

    yield describe("of user", ("user", 0, topic("alice")))
    yield describe("of user strictly", ("user", 0, topic("alice")), strict=True)
    yield describe("of user and any client", ("user", 0, topic("alice")), ("client-id", 2, None))
    yield describe("of user and default client", ("user", 0, topic("alice")), ("client-id", 1, None))
    yield describe("of ip", ("ip", 0, "127.0.0.7"))
    yield describe("exact without name", ("user", 0, None))
    yield describe("default with name", ("user", 1, "x"))
    yield describe("any with name", ("user", 2, "x"))
    yield describe("unknown match", ("user", 7, None))
    yield describe("unknown type", ("planet", 2, None))
    yield describe("empty type", ("", 2, None))
    yield describe("type twice", ("user", 2, None), ("user", 2, None))
    yield describe("ip and user", ("user", 2, None), ("ip", 2, None))


def _scram() -> Iterator[Attempt]:
    up, down = (
        alter_user_scram_credentials.ScramCredentialUpsertion,
        alter_user_scram_credentials.ScramCredentialDeletion,
    )

    def set_one(user: str, mechanism: int = 1, iterations: int = 4096) -> Any:
        return up(
            name=user, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=b"p" * 32
        )

    def alter(name: str, upsertions: Sequence[Any] = (), deletions: Sequence[Any] = ()) -> Attempt:
        request = alter_user_scram_credentials.AlterUserScramCredentialsRequest(
            deletions=tuple(deletions), upsertions=tuple(upsertions)
        )
        return Attempt(f"scram {name}", request)

    alice, bob = topic("alice"), topic("bob")
    yield alter("set", [set_one(alice), set_one(bob, 2, 16384)])
    yield alter("set another mechanism", [set_one(alice, 2, 8192)])
    yield alter("twice", [set_one(bob), set_one(bob, 2)])
    yield alter("set and deleted", [set_one(bob)], [down(name=bob, mechanism=1)])
    yield alter("no name", [set_one("")])
    yield alter("unknown mechanism", [set_one(bob, 7)])
    yield alter("too few iterations", [set_one(bob, 1, 4095)])
    yield alter("too many iterations", [set_one(bob, 1, 16385)])
    yield alter("deleting what is not there", deletions=[down(name="nobody", mechanism=1)])
    yield alter("deleting an unknown mechanism", deletions=[down(name=bob, mechanism=0)])
    name = describe_user_scram_credentials.UserName
    for users in ([alice], [bob], [alice, bob], ["nobody"], [alice, alice], [alice, "nobody"]):
        yield Attempt(
            f"describe scram {users}",
            describe_user_scram_credentials.DescribeUserScramCredentialsRequest(
                users=tuple(name(name=user) for user in users)
            ),
        )
    yield alter("deleted", deletions=[down(name=bob, mechanism=2)])
    yield Attempt(
        "describe deleted scram",
        describe_user_scram_credentials.DescribeUserScramCredentialsRequest(users=(name(name=bob),)),
    )


def _acls() -> Iterator[Attempt]:
    creation = create_acls.AclCreation(
        resource_type=2, resource_name="x", principal="User:a", host="*", operation=3, permission_type=3
    )
    yield Attempt("create acls", create_acls.CreateAclsRequest(creations=(creation, creation)))
    yield Attempt(
        "delete acls",
        delete_acls.DeleteAclsRequest(
            filters=(
                delete_acls.DeleteAclsFilter(
                    resource_type_filter=1,
                    resource_name_filter=None,
                    principal_filter=None,
                    host_filter=None,
                    operation=1,
                    permission_type=1,
                ),
            )
        ),
    )
    yield Attempt(
        "describe acls",
        describe_acls.DescribeAclsRequest(
            resource_type_filter=1,
            resource_name_filter=None,
            principal_filter=None,
            host_filter=None,
            operation=1,
            permission_type=1,
        ),
    )


def _logins() -> Iterator[Attempt]:
    """Ask for what a plain listener does not give."""
    yield Attempt("sasl handshake", sasl_handshake.SaslHandshakeRequest(mechanism="PLAIN"))
    yield Attempt(
        "sasl authenticate", sasl_authenticate.SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret")
    )
    create_token = create_delegation_token.CreateDelegationTokenRequest(renewers=(), max_lifetime_ms=-1)
    yield Attempt("create token", create_token)
    yield Attempt(
        "create a token of somebody else",
        replace(create_token, owner_principal_type="User", owner_principal_name="alice"),
        versions=(3,),
    )
    yield Attempt(
        "renew token",
        renew_delegation_token.RenewDelegationTokenRequest(hmac=b"secret", renew_period_ms=1000),
    )
    yield Attempt(
        "expire token",
        expire_delegation_token.ExpireDelegationTokenRequest(hmac=b"secret", expiry_time_period_ms=-1),
    )
    yield Attempt("describe tokens", describe_delegation_token.DescribeDelegationTokenRequest(owners=None))


def _elections() -> Iterator[Attempt]:
    def elect(
        name: str, kind: int, *partitions: tuple[str, tuple[int, ...]], versions: Sequence[int] = (1, 2)
    ) -> Attempt:
        request = elect_leaders.ElectLeadersRequest(
            election_type=kind,
            topic_partitions=tuple(
                elect_leaders.TopicPartitions(topic=one, partitions=numbers) for one, numbers in partitions
            ),
        )
        return Attempt(f"elect {name}", request, versions)

    plain = topic("plain")
    yield elect("preferred", 0, (plain, (0, 1)), versions=(0, 1, 2))
    yield elect("unclean", 1, (plain, (0, 1)))
    yield elect("unknown topic", 0, ("nope", (0,)), versions=(0, 1, 2))
    yield elect("unknown partition", 0, (plain, (99,)))
    yield elect("unknown kind", 5, (plain, (0,)))
    yield elect("nothing", 0)


def _reassignments() -> Iterator[Attempt]:
    def alter(name: str, topic_name: str, partition: int, replicas: tuple[int, ...] | None) -> Attempt:
        one = alter_partition_reassignments.ReassignablePartition(
            partition_index=partition, replicas=replicas
        )
        request = alter_partition_reassignments.AlterPartitionReassignmentsRequest(
            topics=(alter_partition_reassignments.ReassignableTopic(name=topic_name, partitions=(one,)),),
        )
        return Attempt(f"reassign {name}", request)

    plain = topic("plain")
    yield alter("to the same", plain, 0, (0,))
    yield alter("cancel nothing", plain, 0, None)
    yield alter("to nobody", plain, 0, ())
    yield alter("to unknown", plain, 0, (9,))
    yield alter("to one twice", plain, 0, (0, 0))
    yield alter("unknown topic", "nope", 0, (0,))
    yield alter("unknown partition", plain, 99, (0,))
    unchanged = alter_partition_reassignments.AlterPartitionReassignmentsRequest(
        allow_replication_factor_change=False,
        topics=(
            alter_partition_reassignments.ReassignableTopic(
                name=plain,
                partitions=(
                    alter_partition_reassignments.ReassignablePartition(partition_index=0, replicas=(0,)),
                ),
            ),
        ),
    )
    yield Attempt("reassign with the same factor", unchanged, (1,))
    wanted = list_partition_reassignments.ListPartitionReassignmentsTopics
    yield Attempt(
        "list reassignments of all", list_partition_reassignments.ListPartitionReassignmentsRequest()
    )
    yield Attempt(
        "list reassignments of some",
        list_partition_reassignments.ListPartitionReassignmentsRequest(
            topics=(
                wanted(name=plain, partition_indexes=(0, 99)),
                wanted(name="nope", partition_indexes=(0,)),
            )
        ),
    )


def _features() -> Iterator[Attempt]:
    def update(name: str, feature: str, level: int, kind: int = 1, *, only_check: bool = True) -> Attempt:
        key = update_features.FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=kind)
        request = update_features.UpdateFeaturesRequest(feature_updates=(key,), validate_only=only_check)
        return Attempt(f"feature {name}", request, (1, 2))

    yield update("same level", "share.version", 1, only_check=False)
    yield update("too high", "share.version", 5)
    yield update("unknown", "no.such.feature", 1)
    yield update("unknown at zero", "no.such.feature", 0)
    yield update("down without saying so", "group.version", 0)
    yield update("down", "group.version", 0, 2)
    yield update("up as a downgrade", "group.version", 1, 2)
    yield update("metadata down safely", "metadata.version", 29, 2)
    yield update("metadata down unsafely", "metadata.version", 29, 3)
    yield update("metadata same", "metadata.version", 30)
    yield update("metadata too high", "metadata.version", 31)
    yield update("metadata too low", "metadata.version", 3, 2)
    yield update("kraft down", "kraft.version", 0, 2)
    yield update("kraft same", "kraft.version", 1)
    yield update("negative", "group.version", -1)
    yield update("unknown kind", "group.version", 1, 9)
    yield update("elr down", "eligible.leader.replicas.version", 0, 2)
    old = update_features.FeatureUpdateKey(feature="share.version", max_version_level=0, allow_downgrade=True)
    yield Attempt(
        "feature down in version 0", update_features.UpdateFeaturesRequest(feature_updates=(old,)), (0,)
    )


def _cluster() -> Iterator[Attempt]:
    for endpoint_type in (1, 2, 3):
        yield Attempt(
            f"describe cluster {endpoint_type}",
            describe_cluster.DescribeClusterRequest(
                include_cluster_authorized_operations=endpoint_type == 1, endpoint_type=endpoint_type
            ),
            (1, 2),
        )
    yield Attempt(
        "describe cluster with fenced",
        describe_cluster.DescribeClusterRequest(
            include_cluster_authorized_operations=False, include_fenced_brokers=True
        ),
        (2,),
    )
    yield Attempt(
        "describe cluster in version 0",
        describe_cluster.DescribeClusterRequest(include_cluster_authorized_operations=False),
        (0,),
    )
    for name, number in (("__cluster_metadata", 0), ("__cluster_metadata", 1), ("other", 0)):
        asked = describe_quorum.DescribeQuorumTopic(
            topic_name=name, partitions=(describe_quorum.DescribeQuorumPartition(partition_index=number),)
        )
        yield Attempt(
            f"describe quorum {name} {number}", describe_quorum.DescribeQuorumRequest(topics=(asked,))
        )
    yield Attempt("describe no quorum", describe_quorum.DescribeQuorumRequest(topics=()))
    yield Attempt("unregister unknown", unregister_broker.UnregisterBrokerRequest(broker_id=77))


def _delete_topics() -> Iterator[Attempt]:
    state = delete_topics.DeleteTopicState

    def by_name(name: str, *names: str, versions: Sequence[int] = (1, 2, 3, 4, 5)) -> Attempt:
        request = delete_topics.DeleteTopicsRequest(topic_names=names, timeout_ms=10_000)
        return Attempt(f"delete {name}", request, versions)

    def by_state(name: str, *states: delete_topics.DeleteTopicState) -> Attempt:
        request = delete_topics.DeleteTopicsRequest(topics=states, timeout_ms=10_000)
        return Attempt(f"delete {name}", request, (6,))

    yield by_name("unknown", "nope")
    yield by_name("twice", "nope", "nope")
    yield by_name("one", topic("plain"), versions=(5,))
    yield by_state("by name", state(name=topic("manual"), topic_id=ZERO_UUID))
    yield by_state("unknown id", state(name=None, topic_id=OTHER_ID))
    yield by_state("id twice", state(name=None, topic_id=OTHER_ID), state(name=None, topic_id=OTHER_ID))
    yield by_state("nothing named", state(name=None, topic_id=ZERO_UUID))
    yield by_state("both named", state(name=topic("second"), topic_id=OTHER_ID))
    yield by_state(
        "several",
        state(name=topic("second"), topic_id=ZERO_UUID),
        state(name="nope", topic_id=ZERO_UUID),
        state(name=topic("a.b"), topic_id=ZERO_UUID),
    )
    yield by_state("deleted already", state(name=topic("second"), topic_id=ZERO_UUID))
