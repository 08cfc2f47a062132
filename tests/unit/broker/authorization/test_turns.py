"""A user without rights keeps nobody waiting: refusals are worked out in turns, and in linear time."""

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from benchmarks.expensive import array_paths, fill
from tests.support.data_plane import create_topic
from tests.support.in_process import InProcessClient, in_process_node, loop_of

from ottla.broker.apis.topics.describe_topic_partitions import _sort_out, describe_topic_partitions
from ottla.broker.lifecycle.startup import Node
from ottla.broker.serving.dispatch import PENDING
from ottla.broker.serving.handlers import declared_of
from ottla.broker.serving.in_turns import AT_ONCE, finish
from ottla.broker.serving.replies import CloseConnection
from ottla.broker.serving.served_apis import SERVED, Listener
from ottla.model.uuid import Uuid
from ottla.runtime.turns import Task
from ottla.security.principal import ANONYMOUS, Principal
from ottla.security.standard_authorizer import CLASS_NAME, StandardAuthorizer
from ottla.wire.apis import ApiKey, api_of
from ottla.wire.layout import Field
from ottla.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestTopic,
)

MALLORY = Principal("User", "mallory")
REQUEST_BYTES = 8 * 1024
RIGHTS_AT_ONCE_MAX = 2 * AT_ONCE + 10
"""Some entries ask for two rights each."""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Node, Uuid]]:
    settings = {"authorizer.class.name": CLASS_NAME, "super.users": str(ANONYMOUS)}
    with in_process_node(tmp_path_factory.mktemp("node"), settings) as node:
        yield node, create_topic(InProcessClient(node), "existing")


class Asked:
    """How many rights are asked for in one step: between two places where others may be served."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = self.most = self.total = 0
        allows, step = StandardAuthorizer.allows, Task.step

        def counted(*arguments: Any) -> bool:
            self.now += 1
            self.total += 1
            return allows(*arguments)

        def stepped(task: Task) -> Any:
            self.begin()
            try:
                return step(task)
            finally:
                self.end()

        monkeypatch.setattr(StandardAuthorizer, "allows", counted)
        monkeypatch.setattr(Task, "step", stepped)

    def begin(self) -> None:
        self.now = 0

    def end(self) -> None:
        self.most = max(self.most, self.now)


LISTS = [
    pytest.param(key, path, id=f"{key.name.lower()}-{'.'.join(field.name for field in path)}")
    for key in sorted(SERVED)
    if Listener.BROKER in SERVED[key].listeners and declared_of(key).rights
    for path in array_paths(api_of(key).request, SERVED[key].versions.last)
]


@pytest.mark.parametrize(("key", "path"), LISTS)
def test_a_long_list_is_refused_in_turns(
    node: tuple[Node, Uuid], key: ApiKey, path: tuple[Field, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ottla.broker.serving.cuts.Pace.took", lambda *_: None)
    monkeypatch.setattr("ottla.broker.apis.records.fetch._AT_ONCE", AT_ONCE)
    served, topic_id = node
    version = SERVED[key].versions.last
    frame = fill(api_of(key), version, path, REQUEST_BYTES, "distinct", topic_id)
    assert frame is not None
    client = InProcessClient(served)
    client.session.context.principal = MALLORY
    late: list[Any] = []
    client.session._answer_later = late.append
    asked = Asked(monkeypatch)
    asked.begin()
    pieces: Any = client.session.receive(memoryview(bytearray(frame))[4:])
    asked.end()
    while pieces is PENDING and not client._failures:
        loop_of(served).run_until_complete(asyncio.sleep(0))
        pieces = late.pop() if late else PENDING
    # A producer with acks=0 has no other way to learn of an error.
    assert all(isinstance(failure, CloseConnection) for failure in client._failures)
    if hasattr(pieces, "release"):
        pieces.release()
    assert asked.most <= RIGHTS_AT_ONCE_MAX


class Name(str):
    """A name that counts how often it is compared."""

    compared = 0
    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)


def test_topics_are_sorted_out_in_linear_time() -> None:
    """A list of those that are denied, looked through for each name, took a minute for 623 KB of names."""
    names: list[str] = [Name(f"{number:05}") for number in range(5_000)]
    asked: list[str] = []
    context: Any = SimpleNamespace(allows=lambda _, name: asked.append(name))
    Name.compared = 0
    visible, denied = finish(_sort_out(names, True, context))
    assert (visible, len(denied), len(asked)) == ([], 5_000, 5_000)
    assert Name.compared <= 5_000


def test_pages_of_many_topics_are_the_same_in_turns(node: tuple[Node, Uuid]) -> None:
    client = InProcessClient(node[0])
    names = ("existing", *(f"missing-{number:04}" for number in range(2 * AT_ONCE)))
    ask = DescribeTopicPartitionsRequest(
        topics=tuple(DescribeTopicPartitionsRequestTopic(name=name) for name in reversed(names)),
        response_partition_limit=10,
    )
    work: Any = describe_topic_partitions(ask, client.context)
    turns = 0
    try:
        while True:
            assert next(work) is None
            turns += 1
    except StopIteration as done:
        answer = done.value
    assert turns >= 4
    assert [topic.name for topic in answer.topics] == list(names)
