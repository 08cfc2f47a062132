"""Apache Kafka's own generated classes read our bytes, find our values in them, and write the same bytes."""

import pytest
from hypothesis import strategies as st
from tests.differential.kafka_json import as_kafka_json
from tests.java.generated_messages import GeneratedMessages, Refused, message_text, two_versions_text
from tests.java.oracle import Oracle
from tests.property.messages import message_values
from tests.support.declarations import all_messages, messages_and_versions

from ottla.wire.codec import encode
from ottla.wire.declare import spec_of
from ottla.wire.errors import Unencodable

EXAMPLES = 4
EXAMPLES_OF_PAIRS = 12
MANY_VERSIONS = [name for name, cls in all_messages().items() if len(spec_of(cls).versions.all) > 1]


@pytest.fixture
def generated_messages(oracle: Oracle) -> GeneratedMessages:
    return GeneratedMessages(oracle)


@pytest.mark.parametrize(
    ("name", "version"), [(cls.__name__, version) for cls, version in messages_and_versions()]
)
def test_kafka_reads_and_writes_our_bytes(
    name: str, version: int, oracle: Oracle, generated_messages: GeneratedMessages
) -> None:
    cls = all_messages()[name]
    for message in oracle.examples(message_values(cls, version), EXAMPLES, message_text(cls, version)):
        ours = encode(message, version)
        reading = generated_messages.ask(name, version, ours)
        assert reading.values == as_kafka_json(message, version)
        assert reading.written == ours


@pytest.mark.parametrize("name", sorted(MANY_VERSIONS))
def test_what_a_version_cannot_carry_is_refused_as_by_kafka(
    name: str, oracle: Oracle, generated_messages: GeneratedMessages
) -> None:
    """What was read in one version is written in another, or refused there, exactly as Kafka does."""
    cls = all_messages()[name]
    pairs = st.permutations(spec_of(cls).versions.all).flatmap(
        lambda versions: st.tuples(st.just((versions[0], versions[1])), message_values(cls, versions[0]))
    )
    for (read, write), message in oracle.examples(pairs, EXAMPLES_OF_PAIRS, two_versions_text(cls)):
        ours = encode(message, read)
        try:
            theirs = generated_messages.ask(name, read, ours, write).written
        except Refused:
            with pytest.raises(Unencodable):
                encode(message, write)
        else:
            assert encode(message, write) == theirs


def test_kafka_refuses_bytes_that_are_left_over(generated_messages: GeneratedMessages) -> None:
    # If this passed, the comparison above would prove nothing.
    with pytest.raises(Refused, match="1 bytes are left over"):
        generated_messages.ask("ApiVersionsRequest", 4, b"\x02a\x02b\x00\x00")
