"""`ottla share`, against Ottla and against Apache Kafka."""

from tests.cli.typing import fail, run, succeed

# Otherwise the commands would compile it while the node, a thread of this process, compiles something else,
# which Python 3.11 cannot do reliably.
import ottla.client.share  # noqa: F401


def _queue(bootstrap: str, name: str, *values: str) -> None:
    """Make a topic with records, and a share group of the same name that begins with the first."""
    succeed("topic", "create", name, bootstrap=bootstrap)
    succeed("produce", name, *(f"--value={value}" for value in values), bootstrap=bootstrap)
    succeed("config", "set", "group", name, "share.auto.offset.reset=earliest", bootstrap=bootstrap)


def test_records_are_worked_on_given_back_and_reset(bootstrap: str, name: str) -> None:
    _queue(bootstrap, name, "one", "two", "three")
    released = succeed(
        "share", "consume", name, name, "--count=1", "--acknowledge=release", bootstrap=bootstrap
    )
    assert released.out == "one\n"
    assert succeed("share", "consume", name, name, "--count=2", bootstrap=bootstrap).out == "one\ntwo\n"
    assert succeed("share", "consume", name, name, bootstrap=bootstrap).out == "three\n"
    nothing = run("share", "consume", name, name, bootstrap=bootstrap)
    assert (nothing.code, nothing.out) == (0, "")
    assert "nothing left to deliver" in nothing.err

    described = succeed("share", "describe", name, "--json", bootstrap=bootstrap).data
    assert (described["state"], described["lag"], described["members"]) == ("Empty", 0, [])
    assert [(row["topic"], row["lag"]) for row in described["partitions"]] == [(name, 0)]
    assert "START OFFSET" in succeed("share", "describe", name, bootstrap=bootstrap).out
    listed = succeed("share", "list", "--json", bootstrap=bootstrap)
    assert name in [row["group"] for row in listed.data]

    plan = succeed("share", "reset", name, "--to-offset=1", bootstrap=bootstrap)
    assert "only a plan" in plan.err
    succeed("share", "reset", name, "--to-offset=1", "--execute", bootstrap=bootstrap)
    assert succeed("share", "consume", name, name, bootstrap=bootstrap).out == "two\nthree\n"
    succeed("share", "delete-offsets", name, name, "--yes", bootstrap=bootstrap)
    assert succeed("share", "describe", name, "--json", bootstrap=bootstrap).data["partitions"] == []
    succeed("group", "delete", name, "--yes", bootstrap=bootstrap)


def test_a_topic_that_is_not_there_is_named_and_not_waited_for(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, bootstrap=bootstrap)
    said = fail("share", "consume", name, f"{name}-workers", bootstrap=bootstrap)
    assert f"{name}-workers" in said
    assert "UNKNOWN_TOPIC_OR_PARTITION" in said


def test_a_group_that_is_not_there_is_named(bootstrap: str, name: str) -> None:
    assert name in fail("share", "describe", name, bootstrap=bootstrap)
