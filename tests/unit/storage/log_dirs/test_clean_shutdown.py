"""The mark of a clean stop, in the text that Apache Kafka writes."""

import pytest

from ottla.storage.log_dirs.clean_shutdown import (
    NO_BROKER_EPOCH,
    decode_clean_shutdown,
    encode_clean_shutdown,
)

KAFKA_TEXT = b'{"version":0,"brokerEpoch":492}'


def test_kafkas_file_is_read_and_written_back() -> None:
    assert decode_clean_shutdown(KAFKA_TEXT) == 492
    assert encode_clean_shutdown(492) == KAFKA_TEXT


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"\xff", b'{"version":0}', b'{"brokerEpoch":"x"}'])
def test_a_file_without_an_epoch_still_says_clean(text: bytes) -> None:
    assert decode_clean_shutdown(text) == NO_BROKER_EPOCH
