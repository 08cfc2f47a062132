"""Whoever may not see a group or a topic learns and changes nothing of its offsets. The rest is served."""

from itertools import permutations
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.authorization.guards import find_guard
from ottla.model.uuid import Uuid
from ottla.security.rights import Operation, Right, on_group, on_topic, on_transactional_id
from ottla.wire.apis import ApiKey
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages import offset_commit as commit_messages
from ottla.wire.messages import offset_fetch as fetch_messages
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

DENIED_TOPIC, DENIED_GROUP = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED
IDS = {"mine": Uuid(b"the id of mine.."), "theirs": Uuid(b"the id of theirs")}
UNKNOWN_ID = Uuid(b"an id of nothing")
MINE: set[tuple[Right, str]] = {
    (on_group(Operation.READ), "g"),
    (on_group(Operation.DESCRIBE), "g"),
    (on_group(Operation.DELETE), "g"),
    (on_topic(Operation.READ), "mine"),
    (on_topic(Operation.DESCRIBE), "mine"),
    (on_transactional_id(Operation.WRITE), "tx"),
}


class Context:
    """A client with the rights in `MINE`."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.portion_of = 0
        self.audited: list[str] = []
        topics = {topic_id: SimpleNamespace(name=name) for name, topic_id in IDS.items()}
        self.node = SimpleNamespace(image=SimpleNamespace(topics=SimpleNamespace(find_by_id=topics.get)))

    def may(self, right: Right, name: str) -> bool:
        return (right, name) in MINE

    def allows(self, right: Right, name: str) -> bool:
        if not self.may(right, name):
            self.audited.append(name)
        return self.may(right, name)


class Handler:
    """Serves what gets through, and keeps it."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.served: list[Any] = []

    def __call__(self, ask: Any) -> Any:
        self.served.append(ask)
        return self.answer(ask)


def ask_guard(guard: Any, ask: Any, answer: Any, version: int) -> tuple[Any, Handler, Context]:
    context, handler = Context(version), Handler(answer)
    return guard(ask, context, handler), handler, context


# Commits


def commit_of(group: str, *topics: OffsetCommitRequestTopic) -> OffsetCommitRequest:
    return OffsetCommitRequest(group_id=group, member_id="", topics=topics)


def committed(name: str = "", topic_id: Uuid | None = None) -> OffsetCommitRequestTopic:
    partitions = tuple(
        OffsetCommitRequestPartition(partition_index=number, committed_offset=5, committed_metadata=None)
        for number in (0, 3)
    )
    return OffsetCommitRequestTopic(name=name, topic_id=topic_id or Uuid(bytes(16)), partitions=partitions)


def take_commit(ask: OffsetCommitRequest) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=tuple(
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    OffsetCommitResponsePartition(
                        partition_index=one.partition_index, error_code=ErrorCode.NONE
                    )
                    for one in topic.partitions
                ),
            )
            for topic in ask.topics
        )
    )


def codes_of(topics: Any, key: str = "name") -> list[tuple[Any, int, ErrorCode]]:
    return [
        (getattr(topic, key), one.partition_index, one.error_code)
        for topic in topics
        for one in topic.partitions
    ]


def test_a_commit_for_a_foreign_group_changes_nothing() -> None:
    answer, handler, context = ask_guard(
        find_guard(ApiKey.OFFSET_COMMIT), commit_of("other", committed("mine")), take_commit, 9
    )
    assert codes_of(answer.topics) == [("mine", 0, DENIED_GROUP), ("mine", 3, DENIED_GROUP)]
    assert not handler.served
    assert context.audited == ["other"]


def test_a_commit_is_taken_for_the_topics_that_one_may_read() -> None:
    ask = commit_of("g", committed("theirs"), committed("mine"))
    answer, handler, context = ask_guard(find_guard(ApiKey.OFFSET_COMMIT), ask, take_commit, 9)
    assert codes_of(answer.topics) == [
        ("theirs", 0, DENIED_TOPIC),
        ("theirs", 3, DENIED_TOPIC),
        ("mine", 0, ErrorCode.NONE),
        ("mine", 3, ErrorCode.NONE),
    ]
    assert [topic.name for served in handler.served for topic in served.topics] == ["mine"]
    assert context.audited == ["theirs"]


def test_a_commit_by_ids_is_judged_by_the_names_behind_them() -> None:
    ask = commit_of("g", *(committed(topic_id=one) for one in (IDS["theirs"], IDS["mine"], UNKNOWN_ID)))
    version = commit_messages.TOPIC_IDS_FROM
    answer, handler, _ = ask_guard(find_guard(ApiKey.OFFSET_COMMIT), ask, take_commit, version)
    assert {(topic, code) for topic, _, code in codes_of(answer.topics, "topic_id")} == {
        (IDS["theirs"], DENIED_TOPIC),
        (IDS["mine"], ErrorCode.NONE),
        (UNKNOWN_ID, ErrorCode.NONE),
    }
    (served,) = handler.served
    assert [topic.topic_id for topic in served.topics] == [IDS["mine"], UNKNOWN_ID], "who knows no id is told"


def take_in_transaction(ask: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=tuple(
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=tuple(
                    TxnOffsetCommitResponsePartition(
                        partition_index=one.partition_index, error_code=ErrorCode.NONE
                    )
                    for one in topic.partitions
                ),
            )
            for topic in ask.topics
        )
    )


@pytest.mark.parametrize(
    ("transactional_id", "group", "expected"),
    [
        (
            "other",
            "g",
            [
                ("theirs", 1, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
                ("mine", 1, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
            ],
        ),
        ("tx", "other", [("theirs", 1, DENIED_GROUP), ("mine", 1, DENIED_GROUP)]),
        ("tx", "g", [("theirs", 1, DENIED_TOPIC), ("mine", 1, ErrorCode.NONE)]),
    ],
)
def test_a_commit_in_a_transaction_needs_the_transaction_the_group_and_the_topic(
    transactional_id: str, group: str, expected: list[tuple[str, int, ErrorCode]]
) -> None:
    partition = TxnOffsetCommitRequestPartition(
        partition_index=1, committed_offset=5, committed_metadata=None
    )
    ask = TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group,
        producer_id=1,
        producer_epoch=0,
        topics=tuple(
            TxnOffsetCommitRequestTopic(name=name, partitions=(partition,)) for name in ("theirs", "mine")
        ),
    )
    answer, handler, _ = ask_guard(find_guard(ApiKey.TXN_OFFSET_COMMIT), ask, take_in_transaction, 3)
    assert codes_of(answer.topics) == expected
    taken = [name for name, _, code in expected if code is ErrorCode.NONE]
    assert [topic.name for served in handler.served for topic in served.topics] == taken


# Deleting


def delete_of(group: str, *names: str) -> OffsetDeleteRequest:
    return OffsetDeleteRequest(
        group_id=group,
        topics=tuple(
            OffsetDeleteRequestTopic(name=name, partitions=(OffsetDeleteRequestPartition(partition_index=2),))
            for name in names
        ),
    )


def delete(ask: OffsetDeleteRequest) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(
        topics=tuple(
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetDeleteResponsePartition(
                        partition_index=one.partition_index, error_code=ErrorCode.NONE
                    )
                    for one in topic.partitions
                ),
            )
            for topic in ask.topics
        )
    )


def test_offsets_of_a_foreign_group_are_not_deleted() -> None:
    answer, handler, _ = ask_guard(find_guard(ApiKey.OFFSET_DELETE), delete_of("other", "mine"), delete, 0)
    assert (answer.error_code, answer.topics) == (DENIED_GROUP, ())
    assert not handler.served


def test_offsets_are_deleted_for_the_topics_that_one_may_read() -> None:
    ask = delete_of("g", "mine", "theirs")
    answer, handler, _ = ask_guard(find_guard(ApiKey.OFFSET_DELETE), ask, delete, 0)
    assert sorted(codes_of(answer.topics)) == [("mine", 2, ErrorCode.NONE), ("theirs", 2, DENIED_TOPIC)]
    assert [topic.name for served in handler.served for topic in served.topics] == ["mine"]
    whole, handler, _ = ask_guard(find_guard(ApiKey.OFFSET_DELETE), delete_of("g", "mine"), delete, 0)
    assert codes_of(whole.topics) == [("mine", 2, ErrorCode.NONE)]


def test_a_group_that_cannot_lose_offsets_says_so_whatever_the_topics() -> None:
    def refuse(_ask: OffsetDeleteRequest) -> OffsetDeleteResponse:
        return OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND, topics=())

    answer, handler, _ = ask_guard(find_guard(ApiKey.OFFSET_DELETE), delete_of("g", "theirs"), refuse, 0)
    assert (answer.error_code, answer.topics) == (ErrorCode.GROUP_ID_NOT_FOUND, ())
    assert len(handler.served) == 1, "the group is looked at though no topic is left"


# Fetching

SEVERAL, BY_ID = fetch_messages.SEVERAL_GROUPS_FROM, fetch_messages.TOPIC_IDS_FROM


def fetch_of(*groups: tuple[str, tuple[str, ...] | None], version: int = SEVERAL) -> OffsetFetchRequest:
    def topic(name: str) -> OffsetFetchRequestTopics:
        if version >= BY_ID:
            return OffsetFetchRequestTopics(topic_id=IDS.get(name, UNKNOWN_ID), partition_indexes=(4,))
        return OffsetFetchRequestTopics(name=name, partition_indexes=(4,))

    return OffsetFetchRequest(
        groups=tuple(
            OffsetFetchRequestGroup(
                group_id=group, topics=None if names is None else tuple(map(topic, names))
            )
            for group, names in groups
        )
    )


def fetched(ask: OffsetFetchRequest) -> OffsetFetchResponse:
    """Answer with an offset for each topic, and with both topics where none is named."""
    everything = tuple(
        OffsetFetchRequestTopics(name=name, topic_id=IDS[name], partition_indexes=(4,)) for name in IDS
    )
    return OffsetFetchResponse(
        groups=tuple(
            OffsetFetchResponseGroup(
                group_id=group.group_id,
                topics=tuple(
                    OffsetFetchResponseTopics(
                        name=topic.name,
                        topic_id=topic.topic_id,
                        partitions=(
                            OffsetFetchResponsePartitions(
                                partition_index=4,
                                committed_offset=77,
                                metadata="",
                                error_code=ErrorCode.NONE,
                            ),
                        ),
                    )
                    for topic in (everything if group.topics is None else group.topics)
                ),
            )
            for group in ask.groups
        )
    )


def offsets_of(answer: OffsetFetchResponse, key: str = "name") -> dict[str, Any]:
    return {
        group.group_id: group.error_code
        if group.error_code is not ErrorCode.NONE
        else {
            getattr(topic, key): (one.committed_offset, one.error_code)
            for topic in group.topics
            for one in topic.partitions
        }
        for group in answer.groups
    }


SEEN, HIDDEN = (77, ErrorCode.NONE), (-1, DENIED_TOPIC)


def test_each_group_and_each_topic_is_judged_by_itself() -> None:
    ask = fetch_of(("other", ("mine",)), ("g", ("theirs", "mine")))
    answer, handler, context = ask_guard(find_guard(ApiKey.OFFSET_FETCH), ask, fetched, SEVERAL)
    assert list(offsets_of(answer)) == ["other", "g"], "in the order in which they were asked for"
    assert offsets_of(answer) == {"other": DENIED_GROUP, "g": {"mine": SEEN, "theirs": HIDDEN}}
    (served,) = handler.served
    assert [(group.group_id, [topic.name for topic in group.topics]) for group in served.groups] == [
        ("g", ["mine"])
    ]
    assert "other" in context.audited


def test_nothing_is_looked_up_if_no_group_is_left() -> None:
    ask = fetch_of(("other", None))
    answer, handler, _ = ask_guard(find_guard(ApiKey.OFFSET_FETCH), ask, fetched, SEVERAL)
    assert offsets_of(answer) == {"other": DENIED_GROUP}
    assert not handler.served


def test_topics_that_nobody_named_are_left_out_in_silence() -> None:
    answer, _, context = ask_guard(find_guard(ApiKey.OFFSET_FETCH), fetch_of(("g", None)), fetched, SEVERAL)
    assert offsets_of(answer) == {"g": {"mine": SEEN}}
    assert not context.audited


@pytest.mark.parametrize("version", [SEVERAL, BY_ID])
@pytest.mark.parametrize("named", [(), ("mine",), ("theirs",)])
def test_a_group_that_is_named_twice_shows_no_more(named: tuple[str, ...], version: int) -> None:
    """What one entry asks for must not open what the other one hides."""
    for entries in permutations([("g", named), ("g", None)]):
        ask = fetch_of(*entries, version=version)
        answer, _, _ = ask_guard(find_guard(ApiKey.OFFSET_FETCH), ask, fetched, version)
        key = "topic_id" if version >= BY_ID else "name"
        shown = [
            {getattr(topic, key): topic.partitions[0].committed_offset for topic in group.topics}
            for group in answer.groups
        ]
        of = (lambda name: IDS[name]) if version >= BY_ID else str
        alone = {of(name): 77 if name == "mine" else -1 for name in named}
        expected = {named: alone, None: {of("mine"): 77}}
        assert shown == [expected[topics] for _, topics in entries]


def test_a_group_with_an_error_shows_it_alone() -> None:
    def fail(ask: OffsetFetchRequest) -> OffsetFetchResponse:
        groups = tuple(
            OffsetFetchResponseGroup(group_id=group.group_id, topics=(), error_code=ErrorCode.NOT_COORDINATOR)
            for group in ask.groups
        )
        return OffsetFetchResponse(groups=groups)

    answer, _, _ = ask_guard(find_guard(ApiKey.OFFSET_FETCH), fetch_of(("g", ("theirs",))), fail, SEVERAL)
    assert offsets_of(answer) == {"g": ErrorCode.NOT_COORDINATOR}
    assert answer.groups[0].topics == ()


def test_offsets_by_id_are_judged_by_the_names_behind_them() -> None:
    ask = fetch_of(("g", ("mine", "theirs", "unknown")), version=BY_ID)
    answer, handler, _ = ask_guard(find_guard(ApiKey.OFFSET_FETCH), ask, fetched, BY_ID)
    assert offsets_of(answer, "topic_id") == {
        "g": {IDS["mine"]: SEEN, IDS["theirs"]: HIDDEN, UNKNOWN_ID: SEEN}
    }
    assert [topic.topic_id for topic in handler.served[0].groups[0].topics] == [IDS["mine"], UNKNOWN_ID]


def one_of(group: str, *names: str) -> OffsetFetchRequest:
    topics = tuple(OffsetFetchRequestTopic(name=name, partition_indexes=(4,)) for name in names)
    return OffsetFetchRequest(group_id=group, topics=topics or None)


def fetched_of_one(
    error_code: ErrorCode = ErrorCode.NONE,
) -> Any:
    def answer(ask: OffsetFetchRequest) -> OffsetFetchResponse:
        names = IDS if ask.topics is None else [topic.name for topic in ask.topics]
        topics = tuple(
            OffsetFetchResponseTopic(
                name=name,
                partitions=(
                    OffsetFetchResponsePartition(
                        partition_index=4, committed_offset=77, metadata="", error_code=ErrorCode.NONE
                    ),
                ),
            )
            for name in names
        )
        return OffsetFetchResponse(
            error_code=error_code, topics=topics if error_code is ErrorCode.NONE else ()
        )

    return answer


def test_old_versions_hide_the_same_of_one_group() -> None:
    def ask(request: OffsetFetchRequest) -> dict[str, ErrorCode]:
        answer, _, _ = ask_guard(find_guard(ApiKey.OFFSET_FETCH), request, fetched_of_one(), SEVERAL - 1)
        return {topic.name: topic.partitions[0].error_code for topic in answer.topics}

    assert ask(one_of("g", "mine")) == {"mine": ErrorCode.NONE}
    assert ask(one_of("g", "mine", "theirs")) == {"mine": ErrorCode.NONE, "theirs": DENIED_TOPIC}
    assert ask(one_of("g")) == {"mine": ErrorCode.NONE}


@pytest.mark.parametrize(("group", "error_code"), [("other", DENIED_GROUP), ("g", ErrorCode.NOT_COORDINATOR)])
def test_the_first_versions_say_for_each_partition_what_is_wrong_with_a_group(
    group: str, error_code: ErrorCode
) -> None:
    ask, serve = one_of(group, "mine", "theirs"), fetched_of_one(error_code)
    first = fetch_messages.GROUP_ERROR_FROM
    answer, _, _ = ask_guard(find_guard(ApiKey.OFFSET_FETCH), ask, serve, first - 1)
    assert [(topic.name, topic.partitions[0].error_code) for topic in answer.topics] == [
        ("mine", error_code),
        ("theirs", error_code),
    ]
    later, _, _ = ask_guard(find_guard(ApiKey.OFFSET_FETCH), ask, serve, first)
    assert (later.error_code, later.topics) == (error_code, ())
