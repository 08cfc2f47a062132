"""Apache Kafka's own generated classes read our bytes, find our values in them, and write the same bytes."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.declarations import all_messages, messages_and_versions
from tests.differential.kafka_json import as_kafka_json
from tests.java.generated_messages import GeneratedMessages, Refused
from tests.property.messages import examples, message_values

from ottla.wire.codec import encode


@pytest.fixture(scope="module")
def generated_messages() -> Iterator[GeneratedMessages]:
    java = GeneratedMessages()
    yield java
    java.close()


@pytest.mark.parametrize(
    ("name", "version"), [(cls.__name__, version) for cls, version in messages_and_versions()]
)
@examples(6)
@given(data=st.data())
def test_kafka_reads_and_writes_our_bytes(
    name: str, version: int, data: Any, generated_messages: GeneratedMessages
) -> None:
    message = data.draw(message_values(all_messages()[name], version))
    ours = encode(message, version)
    reading = generated_messages.ask(name, version, ours)
    assert reading.values == as_kafka_json(message, version)
    assert reading.written == ours


def test_kafka_refuses_bytes_that_are_left_over(generated_messages: GeneratedMessages) -> None:
    # If this passed, the comparison above would prove nothing.
    with pytest.raises(Refused, match="1 bytes are left over"):
        generated_messages.ask("ApiVersionsRequest", 4, b"\x02a\x02b\x00\x00")
