"""What is mirrored, by our options and by MirrorMaker 2's properties."""

import json

import pytest

from ottla.mirror.link import Link, UnusableLink
from ottla.mirror.mirror_maker import read_links
from ottla.mirror.progress import PartitionProgress, Progress, metrics_of
from ottla.model.ids import TopicPartition

FILE = {
    "clusters": "A, B",
    "A.bootstrap.servers": "a:9092",
    "A.security.protocol": "SSL",
    "B.bootstrap.servers": "b:9092",
    "A->B.enabled": "true",
    "A->B.topics": "pay.*, orders",
    "B->A.enabled": "false",
    "refresh.topics.interval.seconds": "4",
}


def test_patterns_match_whole_names_and_never_internal_topics() -> None:
    link = Link(source_name="a", source={}, target={}, topics="pay.*", prefix="a.")
    assert link.wants_topic("payments")
    assert not link.wants_topic("repay")
    assert not Link(source_name="a", source={}, target={}).wants_topic("__consumer_offsets")
    assert link.target_name("payments") == "a.payments"


def test_a_pattern_that_is_none_is_refused() -> None:
    with pytest.raises(UnusableLink, match="regular expression"):
        Link(source_name="a", source={}, target={}, topics="(")


def test_a_file_of_mirror_maker_is_a_link() -> None:
    (link,) = read_links(FILE)
    assert (link.source_name, link.refresh_s, link.target_name("payments")) == ("A", 4.0, "A.payments")
    assert link.source == {"bootstrap.servers": "a:9092", "security.protocol": "SSL"}
    assert link.target == {"bootstrap.servers": "b:9092"}
    assert [name for name in ("payments", "orders", "orders2") if link.wants_topic(name)] == [
        "payments",
        "orders",
    ]


def test_names_stay_with_the_identity_policy() -> None:
    policy = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
    for is_exact in (True, False):
        (link,) = read_links({**FILE, "replication.policy.class": policy}, is_exact=is_exact)
        assert link.target_name("payments") == "payments"


def test_a_policy_that_is_not_known_is_refused() -> None:
    with pytest.raises(UnusableLink, match=r"org\.example\.Own"):
        read_links({**FILE, "replication.policy.class": "org.example.Own"})


def test_a_topic_never_goes_back_to_where_it_came_from() -> None:
    both = {**FILE, "A->B.topics": ".*", "B->A.enabled": "true"}
    there, back = read_links(both)
    assert [name for name in ("t", "B.t", "C.t", "C.B.t") if there.wants_topic(name)] == ["t", "C.t"]
    assert [name for name in ("t", "A.t", "C.t", "C.A.t") if back.wants_topic(name)] == ["t", "C.t"]
    assert there.maker is not None
    assert not there.maker.goes_round("t")


def test_with_names_that_stay_a_topic_that_both_ways_mirror_goes_round() -> None:
    policy = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
    both = {**FILE, "B->A.enabled": "true", "B->A.topics": "orders", "replication.policy.class": policy}
    there, _ = read_links(both)
    assert there.maker is not None
    assert [name for name in ("payments", "orders") if there.maker.goes_round(name)] == ["orders"]


def test_properties_of_a_direction_win_over_those_of_all() -> None:
    (link,) = read_links(
        {
            **FILE,
            "topics.exclude": "payments-old, tmp.*",
            "groups.exclude": "test",
            "emit.checkpoints.interval.seconds": "60",
            "A->B.emit.checkpoints.interval.seconds": "2",
            "sync.group.offsets.enabled": "true",
            "emit.heartbeats.enabled": "false",
            "A.consumer.isolation.level": "read_uncommitted",
            "offset-syncs.topic.location": "target",
            "B.sasl.jaas.config": "x.PlainLoginModule required username=u password=p;",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": "/ca.pem",
        }
    )
    options = link.maker
    assert options is not None
    assert (options.checkpoints_s, options.group_offsets_s, options.heartbeats_s) == (2, 60, None)
    assert (options.isolation.name, options.offset_syncs_topic) == (
        "READ_UNCOMMITTED",
        "mm2-offset-syncs.A.internal",
    )
    assert not link.wants_topic("payments-old")
    assert link.wants_topic("heartbeats")
    assert not link.wants_group("test")
    assert link.target["sasl.username"] == "u"
    assert link.source["ssl.ca.location"] == link.target["ssl.ca.location"] == "/ca.pem"


def test_a_file_without_a_direction_is_refused() -> None:
    with pytest.raises(UnusableLink, match="enabled"):
        read_links({**FILE, "A->B.enabled": "false"})
    with pytest.raises(UnusableLink, match=r"B\.bootstrap\.servers"):
        read_links({name: value for name, value in FILE.items() if name != "B.bootstrap.servers"})


def test_what_the_file_says_of_internal_topics_is_read() -> None:
    (link,) = read_links(
        {
            **FILE,
            "replication.policy.separator": "_",
            "offset.storage.partitions": "7",
            "offset.storage.replication.factor": "2",
            "checkpoints.topic.replication.factor": "-1",
            "emit.checkpoints.enabled": "false",
            "sync.group.offsets.enabled": "true",
            "A.consumer.auto.offset.reset": "latest",
        }
    )
    options = link.maker
    assert options is not None
    assert (link.target_name("payments"), options.names.checkpoints) == (
        "A_payments",
        "A_checkpoints_internal",
    )
    assert (options.offsets_partitions, options.offsets_replication_factor) == (7, 2)
    assert (options.internal_replication_factor, options.checkpoints_s, options.group_offsets_s) == (
        None,
        None,
        None,
    )
    assert options.from_latest
    plain = "replication.policy.internal.topic.separator.enabled"
    (link,) = read_links({**FILE, "replication.policy.separator": "_", plain: "false"})
    assert link.maker is not None
    assert link.maker.names.checkpoints == "A.checkpoints.internal"


@pytest.mark.parametrize(
    ("properties", "problem"),
    [
        ({"replication.policy.separator": ""}, "separator is empty"),
        ({"A.sasl.jaas.config": "org.example.OddModule required;"}, "A: "),
    ],
)
def test_what_cannot_be_used_is_refused(properties: dict[str, str], problem: str) -> None:
    with pytest.raises(UnusableLink, match=problem):
        read_links({**FILE, **properties})


def test_progress_is_told_in_numbers() -> None:
    progress = Progress("A")
    where = TopicPartition("A.payments", 0)
    part = PartitionProgress(TopicPartition("payments", 0), copied_to=40, source_end=45)
    progress.partitions[where] = part
    progress.measure(10.0)
    part.bytes_copied = 5000
    progress.measure(12.0)
    assert (part.lag, progress.bytes_per_second) == (5, 2500)
    assert PartitionProgress(TopicPartition("payments", 0)).lag is None
    back = Progress("B", 'a "C"')
    back.note_error("following", "gone")
    lines = metrics_of([progress, back]).splitlines()
    assert 'ottla_mirror_lag{source="A",topic="A.payments",partition="0"} 5' in lines
    assert 'ottla_mirror_lag_unknown{source="A",topic="A.payments",partition="0"} 0' in lines
    part.error = "broken"
    unknown = metrics_of([progress]).splitlines()
    assert 'ottla_mirror_lag{source="A",topic="A.payments",partition="0"} NaN' in unknown
    assert 'ottla_mirror_lag_unknown{source="A",topic="A.payments",partition="0"} 1' in unknown
    assert 'ottla_mirror_up{source="A"} 1' in lines
    assert 'ottla_mirror_errors_total{source="B",target="a \\"C\\""} 1' in lines
    # Prometheus refuses a page that describes a metric twice.
    described = [line for line in lines if line.startswith("# TYPE")]
    assert len(described) == len(set(described))


def test_the_last_error_stays_when_the_link_works_again() -> None:
    progress = Progress("A")
    progress.note_error("following", "gone")
    progress.note_success("copying")
    assert json.loads(progress.as_json(0))["error"] == "gone", "the success of other work mends nothing"
    progress.note_success("following")
    told = json.loads(progress.as_json(0))
    assert (told["error"], told["last_error"]) == (None, "gone")
