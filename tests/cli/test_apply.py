"""A cluster as one file: what is planned is what is done, and the second time nothing is."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.typing import Typed, fail, run, succeed

from ottla.cli.desired.planning import Action, Impossible, plan
from ottla.cli.desired.state import AccessRule, State, Topic, User, Whom, read_state, render_state
from ottla.security.standard_authorizer import CLASS_NAME
from ottla.testing.node import ThreadNode

FILE = """
[topics.orders]
partitions = 3
replication_factor = 1
configs = { "retention.ms" = "7d", "cleanup.policy" = "delete" }

[topics."a.b"]

[configs.broker.all]
"log.retention.ms" = 3600000

[configs.group.readers]
"consumer.session.timeout.ms" = "50s"

[[rules]]
principal = "alice"
operation = "write"
resource = "topic:ord*"

[[quotas]]
user = "alice"
producer_byte_rate = 1000000

[users.alice]
password_file = "alice.password"
"""

RULE = """
[[rules]]
principal = "a"
operation = "write"
resource = "topic:t"
"""


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = {"authorizer.class.name": CLASS_NAME, "super.users": "User:ANONYMOUS"}
    with ThreadNode(tmp_path_factory.mktemp("guarded"), settings) as node:
        yield node.bootstrap


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "alice.password").write_text("secret\n")
    path = tmp_path / "cluster.toml"
    path.write_text(FILE)
    return path


def test_a_file_is_read_as_it_is_meant(file: Path) -> None:
    state = read_state(file)
    assert state.topics["orders"] == Topic(3, 1, {"retention.ms": "604800000", "cleanup.policy": "delete"})
    assert state.configs["group", "readers"] == {"consumer.session.timeout.ms": "50000"}
    assert state.rules == {AccessRule("User:alice", "write", "topic:ord*")}
    assert state.quotas == {Whom(user="alice"): {"producer_byte_rate": 1e6}}
    assert state.users["alice"].password_file == str(file.parent / "alice.password")


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    state = State(
        {"a.b": Topic(3, 1, {"k": 'quoted "x"\n'}), "plain": Topic(1, 1)},
        {("broker", "all"): {"x": "1"}, ("client-metrics", "ä"): {"metrics": "a,b"}},
        frozenset(
            {
                AccessRule("User:a", "read", "group:*"),
                AccessRule("User:b", "all", "cluster", "deny", "10.0.0.1"),
            }
        ),
        {Whom(client="default"): {"request_percentage": 50.5}, Whom("u", "c"): {"producer_byte_rate": 1.0}},
        {"a": User()},
    )
    (tmp_path / "state.toml").write_text(render_state(state))
    assert read_state(tmp_path / "state.toml") == state


def test_nothing_is_removed_unless_that_is_asked_for() -> None:
    now = State(
        {"old": Topic(1, 1)}, {}, frozenset({AccessRule("User:a", "read", "topic:x")}), {}, {"u": User()}
    )
    wanted = State(sections=frozenset({"topics", "rules"}))
    assert plan(wanted, now) == []
    assert [(one.action, one.kind) for one in plan(wanted, now, prune=True)] == [
        (Action.DELETE, "topic"),
        (Action.DELETE, "rule"),
    ], "the file says nothing of users"


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (State({"t": Topic(2)}), "has 3 partitions, more than 2: they cannot be removed"),
        (State({"t": Topic(3, 3)}), "has 1 replicas, not 3"),
        (State(users={"x": User()}), "has no password_file"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is(wanted: State, said: str) -> None:
    with pytest.raises(Impossible, match=said):
        plan(wanted, State({"t": Topic(3, 1)}))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[topics.t]\npartition = 3", "topic t has 'partition'; did you mean partitions?"),
        ("[topic.t]", "the file has 'topic'; did you mean topics?"),
        ("[topics.t]\npartitions = 0", "it has to be a number from 1 on"),
        ("[topics.t]\nconfigs = 3", "configs of t has to be a table"),
        ("[configs.brokr.x]", "configs has 'brokr'; did you mean broker?"),
        ("[[quotas]]\nproducer_byte_rate = 1", "a quota needs a user, a client or an ip"),
        ("[[rules]]\nprincipal = 'a'", "is not a state of a cluster"),
        (RULE.replace("write", "wirte"), "operation of a rule is 'wirte'; did you mean write?"),
        (RULE.replace("topic:t", "t"), "'t' is not one of topic:NAME"),
        (RULE + "permission = 'alow'", "permission of a rule is 'alow'; did you mean allow?"),
        ("[[quotas]]\nuser = 'a'\nproducer_byte_rate = '1MB'", "it has to be a number, such as 1000000"),
        ("topics = [", "cannot read"),
    ],
)
def test_a_file_with_a_mistake_changes_nothing(tmp_path: Path, guarded: str, text: str, said: str) -> None:
    (tmp_path / "wrong.toml").write_text(text)
    assert said in fail("apply", str(tmp_path / "wrong.toml"), "--yes", bootstrap=guarded)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[topics.b]\nconfigs = { 'cleanup.polcy' = 'delete' }", "Unknown topic config name: cleanup.polcy"),
        ("[topics.b]\nreplication_factor = 3", "replication factor of 3 cannot be reached"),
        ("[topics.'b b']", "Topic name is invalid"),
        ("[configs.broker.all]\n'log.retention.ms' = 'forever'", "Invalid value forever"),
        ("[[quotas]]\nuser = 'a'\nproducer_byte_rate = -1", "must be greater than 0"),
        ("[users.b]\npassword_file = 'missing'", "cannot read the password of b"),
    ],
)
def test_what_a_broker_would_refuse_is_said_before_anything_is_done(
    tmp_path: Path, guarded: str, text: str, said: str
) -> None:
    (tmp_path / "half.toml").write_text(f"[topics.a-half]\n\n{text}\n")
    assert said in fail("plan", str(tmp_path / "half.toml"), bootstrap=guarded)
    assert said in fail("apply", str(tmp_path / "half.toml"), "--yes", bootstrap=guarded)
    assert "a-half" not in succeed("topic", "list", bootstrap=guarded).out


def planned(file: Path, bootstrap: str, *options: str) -> Typed:
    return run("plan", str(file), *options, bootstrap=bootstrap)


def test_a_plan_is_exact_and_the_second_apply_changes_nothing(
    file: Path, guarded: str, tmp_path: Path
) -> None:
    first = planned(file, guarded)
    assert first.code == 10
    assert "create topic orders: partitions=3, replication_factor=1, retention.ms=604800000" in first.out
    assert "create rule allow User:alice write topic:ord*" in first.out
    done = succeed("apply", str(file), "--yes", bootstrap=guarded)
    assert done.out.startswith(first.out)
    assert planned(file, guarded).out == "the cluster is what the file says\n"
    assert succeed("apply", str(file), "--json", bootstrap=guarded).data == []

    # What a cluster exports is what it is.
    exported = tmp_path / "exported.toml"
    exported.write_text(succeed("export", bootstrap=guarded).out)
    assert planned(exported, guarded, "--prune").code == 0
    assert "secret" not in exported.read_text()

    # Somebody changes it by hand, and the file puts it right.
    succeed("topic", "alter", "orders", "--config", "retention.ms=1", "--partitions", "4", bootstrap=guarded)
    assert "they cannot be removed; nothing was done" in fail("apply", str(file), "--yes", bootstrap=guarded)
    file.write_text(FILE.replace("partitions = 3", "partitions = 5"))
    succeed("topic", "create", "stray", bootstrap=guarded)
    changed = planned(file, guarded, "--json").data
    assert [(one["action"], one["kind"], one["name"], one["values"]) for one in changed] == [
        ("change", "topic", "orders", {"partitions": 5, "retention.ms": "604800000"})
    ]
    succeed("apply", str(file), "--yes", "--prune", bootstrap=guarded)
    names = [row["topic"] for row in succeed("topic", "list", "--json", bootstrap=guarded).data]
    assert names == ["a.b", "orders"]
    assert planned(file, guarded, "--prune").code == 0
