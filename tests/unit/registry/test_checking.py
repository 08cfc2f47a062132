"""Schemas are looked at in other processes, which are given up when they take too much."""

import asyncio
import json
from typing import Any

import pytest

from ottla.registry.checking.answers import Answers, NotYetKnown
from ottla.registry.checking.pool import WorkerPool
from ottla.registry.checking.questions import (
    Answerer,
    Comparison,
    Failure,
    Kind,
    Question,
    Source,
    decode_answer,
    decode_question,
    encode_answer,
    encode_question,
)
from ottla.registry.parsing import Parser
from ottla.schemas.compatibility import Level
from ottla.schemas.errors import InvalidSchema
from ottla.schemas.parsed import Reference
from ottla.schemas.stored.state import State

PATIENCE_S = 120
AVRO = Source("AVRO", '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}')
OTHER = AVRO._replace(text=AVRO.text.replace("int", "string"))
REFERRING = Source(
    "PROTOBUF",
    'syntax = "proto3"; import "a.proto"; message M { A a = 1; }',
    (Reference("a.proto", "a", 1),),
    (("a.proto", 'syntax = "proto3"; message A { int32 b = 1; }'),),
)
QUESTIONS = [
    Question(Kind.TEXT, AVRO),
    Question(Kind.CHECK, AVRO),
    Question(Kind.NORMALIZED, REFERRING),
    Question(Kind.FORMATTED, AVRO, "resolved"),
    Question(Kind.HAS_FIELD, AVRO, "a"),
    Question(Kind.MISFITS, AVRO, Comparison(Level.FULL, is_lenient=False, versions=((1, OTHER),))),
    Question(Kind.TEXT, Source("AVRO", '{"type": "nothing"}')),
    Question(Kind.TEXT, Source("AVRO", "[" * 100_000)),
]


def _slow() -> Question:
    """Return a question that takes seconds: many pairs of long lists."""

    def branches(first: int) -> Source:
        kept = [f"value-{number}" for number in range(1000)]
        values = [[*kept, f"{first}-{number}"] for number in range(400)]
        return Source("JSON", json.dumps({"oneOf": [{"enum": value} for value in values]}))

    return Question(
        Kind.MISFITS, branches(1), Comparison(Level.FULL, is_lenient=False, versions=((1, branches(2)),))
    )


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.kind.name)
def test_questions_and_answers_survive_the_way(question: Question) -> None:
    answer = Answerer().answer(question)
    assert decode_question(encode_question(question)) == question
    assert decode_answer(question.kind, encode_answer(answer)) == answer


def test_workers_answer() -> None:
    async def run() -> None:
        pool = WorkerPool()
        try:
            for question in QUESTIONS:
                assert await pool.ask(question) == Answerer().answer(question)
        finally:
            await pool.stop()

    asyncio.run(run())


def test_what_takes_too_much_is_given_up_and_others_are_answered() -> None:
    async def run() -> None:
        pool = WorkerPool(cpu_s=1)
        try:
            slow = asyncio.create_task(pool.ask(_slow()))
            assert await pool.ask(QUESTIONS[0]) == Answerer().answer(QUESTIONS[0])
            async with asyncio.timeout(PATIENCE_S):
                answer = await slow
            assert isinstance(answer, Failure)
            assert "make it simpler" in answer.message
            assert await pool.ask(QUESTIONS[1]) is None
        finally:
            await pool.stop()

    asyncio.run(run())


def test_too_much_memory_is_an_answer() -> None:
    async def run() -> None:
        pool = WorkerPool(memory_bytes=20_000_000)
        try:
            large = Source("JSON", json.dumps({"enum": list(range(1_000_000))}))
            answer = await pool.ask(Question(Kind.CHECK, large))
            assert isinstance(answer, Failure)
            assert "memory" in answer.message
            assert await pool.ask(Question(Kind.TEXT, Source("JSON", "{}"))) == "{}"
        finally:
            await pool.stop()

    asyncio.run(run())


def test_a_worker_that_computes_does_not_keep_the_registry_from_stopping() -> None:
    async def run() -> None:
        pool = WorkerPool(cpu_s=1_000_000)
        slow = asyncio.create_task(pool.ask(_slow()))
        await pool.ask(QUESTIONS[0])
        assert not slow.done()
        async with asyncio.timeout(PATIENCE_S):
            slow.cancel()
            await asyncio.gather(slow, return_exceptions=True)
            await pool.stop()

    asyncio.run(run())


def test_a_decision_is_made_again_until_all_is_known() -> None:
    asked: list[Question] = []
    answerer = Answerer()

    async def find_out(question: Question) -> Any:
        asked.append(question)
        return answerer.answer(question)

    async def run() -> None:
        answers = Answers(find_out)
        parser = Parser(State(), answers)
        calls = 0

        def decide() -> str:
            nonlocal calls
            calls += 1
            schema = parser.parse("s", "AVRO", AVRO.text, ())
            schema.check()
            return schema.normalized().text

        assert await answers.settle(decide) == answerer.answer(Question(Kind.TEXT, AVRO))
        assert calls == len(asked) + 1
        before = len(asked)
        await answers.settle(decide)
        assert len(asked) == before
        with pytest.raises(NotYetKnown):
            parser.parse("s", "AVRO", '"int"', ())
        with pytest.raises(InvalidSchema):
            await answers.settle(lambda: answers.ask(QUESTIONS[-2]))

    asyncio.run(run())


async def _answer_for_sure(answers: Answers, decide: Any) -> Any:
    async with asyncio.timeout(PATIENCE_S):
        return await answers.settle(decide)


def test_a_decision_ends_also_if_its_answers_do_not_all_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A comparison with many long versions drives out the answer before it, which drives it out again."""
    monkeypatch.setattr("ottla.registry.checking.answers._KEPT_CHARACTERS_MAX", 10)
    monkeypatch.setattr("ottla.registry.checking.answers._STEPS_MAX", 10)
    asked: list[Question] = []

    async def find_out(question: Question) -> Any:
        asked.append(question)
        return question.kind.value

    answers = Answers(find_out)

    def decide() -> list[Any]:
        return [answers.ask(question) for question in QUESTIONS[:3]]

    expected = [question.kind.value for question in QUESTIONS[:3]]
    assert asyncio.run(_answer_for_sure(answers, decide)) == expected
    assert asked == QUESTIONS[:3]
    # What did not fit is not kept for the next decision.
    with pytest.raises(NotYetKnown):
        decide()
