"""A topic or a group has its own values first, then the broker's."""

from ottla.metadata.configs.describe import Wanted, describe_group
from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.configs.load import STARTING_VALUES

STATIC = {**STARTING_VALUES, "log.dirs": "/data"}


def test_a_topic_takes_from_the_broker_what_it_does_not_set() -> None:
    configs = EffectiveConfigs({**STATIC, "log.segment.bytes": "2000000", "log.retention.hours": "2"})
    topic = configs.topic({"cleanup.policy": "compact"})
    assert topic.segment_bytes == 2_000_000
    assert topic.retention_ms == 2 * 3_600_000
    assert topic.cleanup_policy == ("compact",)


def test_times_of_the_broker_reach_a_topic_whatever_their_unit() -> None:
    configs = EffectiveConfigs(
        {
            **STATIC,
            "log.roll.hours": "3",
            "log.roll.jitter.hours": "1",
            "log.flush.scheduler.interval.ms": "700",
            "log.retention.minutes": "5",
        }
    )
    topic = configs.topic({})
    assert topic.segment_ms == 3 * 3_600_000
    assert topic.segment_jitter_ms == 3_600_000
    assert topic.flush_ms == 700
    assert topic.retention_ms == 300_000


def test_topics_without_overrides_share_one_object() -> None:
    configs = EffectiveConfigs(STATIC)
    assert configs.topic({}) is configs.topic({})


def test_overrides_nobody_understands_are_passed_over() -> None:
    configs = EffectiveConfigs(STATIC)
    topic = configs.topic({"from.the.future": "1", "segment.ms": "soon", "retention.ms": "5"})
    assert topic.retention_ms == 5
    assert topic.segment_ms == configs.topic_defaults.segment_ms


def test_a_change_while_running_reaches_topics_and_groups() -> None:
    before = EffectiveConfigs(STATIC)
    after = before.with_dynamic({"log.retention.ms": "9"}, {"group.consumer.assignment.interval.ms": "7"})
    assert after.topic({}).retention_ms == 9
    assert after.group({}).consumer_assignment_interval_ms == 7
    assert after.with_dynamic({}, {}).node == before.node


def test_a_group_takes_from_the_broker_what_it_does_not_set() -> None:
    configs = EffectiveConfigs({**STATIC, "group.consumer.session.timeout.ms": "50000"})
    group = configs.group({"consumer.heartbeat.interval.ms": "6000"})
    assert group.consumer_session_timeout_ms == 50_000
    assert group.consumer_heartbeat_interval_ms == 6000
    assert group.share_auto_offset_reset == "latest"


def test_a_broker_whose_bounds_became_narrower_bounds_its_groups() -> None:
    overrides = {"consumer.session.timeout.ms": "60000", "streams.num.standby.replicas": "2"}
    configs = EffectiveConfigs(
        {
            **STATIC,
            "group.consumer.max.session.timeout.ms": "50000",
            "group.streams.max.standby.replicas": "1",
        }
    )
    group = configs.group(overrides)
    assert group.consumer_session_timeout_ms == 50_000
    assert group.streams_num_standby_replicas == 1
    described = {config.name: config.value for config in describe_group(configs, overrides, Wanted())}
    assert described["consumer.session.timeout.ms"] == "60000"
