"""Why records were set aside: the reasons of dead letters as a histogram."""

import asyncio
from collections.abc import Iterator

import pytest
from tests.console.conftest import QUICK
from tests.console.test_pages import text_of
from tests.support.console_visitor import ConsoleVisitor

from ottla.client.producer import Producer
from ottla.testing.node import ThreadNode

Letters = tuple[tuple[str, bytes | None], ...]
CONNECT: Letters = (
    ("__connect.errors.topic", b"orders"),
    ("__connect.errors.partition", b"2"),
    ("__connect.errors.offset", b"9007199254740993"),
    ("__connect.errors.exception.message", b"<b>no</b> number"),
)
PIPELINE: Letters = (("ottla.reason", b"field price is missing"), ("ottla.topic", b"orders"))
QUEUE: Letters = (("__dlq.errors.message", b"rejected"), ("__dlq.errors.offset", b"x"))
NONE: Letters = (("source", b"web"), ("ottla.reason", None))


@pytest.fixture
def looking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleVisitor]:
    """Somebody who looks at a topic with dead letters."""
    with ThreadNode(tmp_path_factory.mktemp("letters"), QUICK) as node:
        node.create_topic("dead")

        async def write() -> None:
            async with Producer(node.bootstrap) as producer:
                for headers in (PIPELINE, CONNECT, CONNECT, CONNECT, QUEUE, NONE):
                    await producer.send("dead", b"x", headers=headers)

        asyncio.run(write())
        with ConsoleVisitor.of(node.bootstrap) as visitor:
            yield visitor


def test_the_reasons_of_dead_letters_are_counted(looking: ConsoleVisitor) -> None:
    page = looking.page("/topics/dead/letters")
    text = text_of(page)
    assert "5 of the newest 6 records" in text
    assert "3 &lt;b&gt;no&lt;/b&gt; number" in text
    assert text.index("number") < text.index("field price is missing")
    assert "1 rejected" in text
    # Where the record was, and where its newest letter is.
    assert 'href="/c/c/topics/orders/records/2/9007199254740993"' in page
    assert 'href="/c/c/topics/dead/records/0/3"' in page


def test_a_topic_without_dead_letters_says_so(visitor: ConsoleVisitor) -> None:
    assert "None of the newest" in visitor.page("/topics/shop.orders/letters")
