"""The state of a cluster as a file: each table of it is checked, and what is not said has a default."""

from pathlib import Path

import pytest

from ottla.cli.desired.state import AccessRule, State, Topic, User, Whom, read_state, render_state
from ottla.cli.failure import Failure

RULE = '[[rules]]\nprincipal = "a"\noperation = "READ"\nresource = "topic:t"\n'


def read(tmp_path: Path, text: str) -> State:
    path = tmp_path / "state.toml"
    path.write_text(text)
    return read_state(path)


def test_an_empty_file_speaks_of_nothing(tmp_path: Path) -> None:
    assert read(tmp_path, "") == State(sections=frozenset())
    assert read(tmp_path, "[topics]\n[users]").sections == {"topics", "users"}


def test_what_is_not_said_has_a_default(tmp_path: Path) -> None:
    found = read(tmp_path, f"[topics.t]\n[users.u]\n{RULE}[[quotas]]\nip = '1.2.3.4'\n")
    assert found.topics == {"t": Topic(None, None, {})}
    assert found.users == {"u": User("SCRAM-SHA-512", None)}
    assert found.rules == {AccessRule("User:a", "read", "topic:t")}
    assert found.quotas == {Whom(ip="1.2.3.4"): {}}


def test_values_are_texts_as_configs_have_them(tmp_path: Path) -> None:
    text = "[configs.broker.all]\na = true\nb = 5\nc = 'x'\nd = 0.5\n"
    assert read(tmp_path, text).configs == {("broker", "all"): {"a": "true", "b": "5", "c": "x", "d": "0.5"}}


def test_a_principal_of_another_kind_stays_and_a_password_lies_beside_the_file(tmp_path: Path) -> None:
    text = RULE.replace('"a"', '"Group:a"') + "permission = 'deny'\n[users.u]\npassword_file = 'deep/p'\n"
    found = read(tmp_path, text + "mechanism = 'SCRAM-SHA-256'\n")
    (rule,) = found.rules
    assert (rule.principal, rule.permission) == ("Group:a", "deny")
    assert found.users["u"] == User("SCRAM-SHA-256", str(tmp_path / "deep/p"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("topics = 3", "topics has to be a table"),
        ("configs = 3", "configs has to be a table"),
        ("configs.broker = 3", "broker has to be a table"),
        ("configs.broker.all = 3", "configs.broker.all has to be a table"),
        ("configs.broker.all.a = [1]", "configs.broker.all.a has to be text or a number"),
        ("topics.t = 3", "topic t has to be a table"),
        ("topics.t.partitions = 0", "partitions of t is 0: it has to be a number from 1 on"),
        ("topics.t.partitions = true", "partitions of t is True: it has to be a number from 1 on"),
        ("topics.t.partitions = '3'", "partitions of t is '3': it has to be a number from 1 on"),
        ("topics.t.replication_factor = -1", "replication_factor of t is -1"),
        ("topics.t.configs.a = {}", "configs of t.a has to be text or a number"),
        ("users = 3", "users has to be a table"),
        ("users.u = 3", "user u has to be a table"),
        ("users.u.password = 'x'", "user u has 'password'; did you mean password_file?"),
        ("users.u.password_file = []", "a file has to be text or a number"),
        ("rules = [3]", "a rule has to be a table"),
        (RULE + "hosts = '*'", "a rule has 'hosts'; did you mean host?"),
        (RULE + "permission = 'maybe'", "the permission of a rule is 'maybe'; there are allow, deny"),
        (RULE.replace("READ", "look"), "the operation of a rule is 'look'; there are all, read"),
        (RULE.replace("topic:t", "t"), "'t' is not one of topic:NAME"),
        ("quotas = [3]", "a quota has to be a table"),
        ("quotas = [{}]", "a quota needs a user, a client or an ip"),
        ("quotas = [{user = 'u', producer_byte_rate = true}]", "producer_byte_rate of a quota is True"),
        ("quotas = [{user = 'u', rate = 1}]", "a quota has 'rate'"),
        ("[topics]\n[topics]", "cannot read"),
        ("nodes = 3", "the file has 'nodes'; there are topics, configs"),
    ],
)
def test_each_mistake_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(Failure) as caught:
        read(tmp_path, text)
    assert said in str(caught.value)
    assert str(tmp_path / "state.toml") in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="cannot read "):
        read_state(tmp_path / "state.toml")


def test_what_is_rendered_is_read_as_it_was(tmp_path: Path) -> None:
    state = State(
        {"b.c": Topic(2, 1, {"z": "1", "a": '"'}), "a-b_c": Topic(1, 1, {})},
        {("broker", "all"): {"y": "1", "x": "2"}},
        frozenset(
            {
                AccessRule("User:a", "read", "topic:t"),
                AccessRule("User:ü", "all", "cluster", "deny", "1.1.1.1"),
            }
        ),
        {Whom(user="default"): {"b": 1.5, "a": 2.0}, Whom("u", "c"): {"request_percentage": 3.0}},
        {"u": User("SCRAM-SHA-256")},
    )
    quotas = {Whom(user="default"): {"producer_byte_rate": 1.5}, Whom("u", "c"): {"request_percentage": 3.0}}
    state = State(state.topics, state.configs, state.rules, quotas, state.users)
    text = render_state(state)
    assert read(tmp_path, text) == state
    assert text.index("[topics.a-b_c]") < text.index('[topics."b.c"]')
    assert text.index('a = "\\""') < text.index('z = "1"')
    assert text.index('x = "2"') < text.index('y = "1"')
    assert text.endswith("\n")
