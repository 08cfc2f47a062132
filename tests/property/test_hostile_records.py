"""Spoilt metadata and coordinator records raise a typed error, whatever was done to them."""

from random import Random
from typing import Any

import pytest
from tests.fuzz.mutations import mutate
from tests.support.declarations import populated

from ottla.wire.coordinator_records.framing import (
    GROUP_RECORDS,
    SHARE_STATE_RECORDS,
    TRANSACTION_RECORDS,
    CoordinatorRecords,
)
from ottla.wire.declare import spec_of
from ottla.wire.errors import MalformedBytes
from ottla.wire.metadata_records.framing import (
    METADATA_RECORDS,
    decode_metadata_record,
    encode_metadata_record,
)

TOPICS = (GROUP_RECORDS, TRANSACTION_RECORDS, SHARE_STATE_RECORDS)
ROUNDS = 50


@pytest.mark.parametrize("cls", METADATA_RECORDS)
def test_spoilt_metadata_records_raise_only_typed_errors(cls: type[Any]) -> None:
    random = Random(cls.__name__)
    refused = 0
    for version in spec_of(cls).versions.all:
        value = encode_metadata_record(populated(cls, version), version)
        for _ in range(ROUNDS):
            try:
                decode_metadata_record(mutate(value, random, [value], keep=3))
            except MalformedBytes:
                refused += 1
    assert refused > 0


@pytest.mark.parametrize("records", TOPICS, ids=[records.topic for records in TOPICS])
def test_spoilt_coordinator_records_raise_only_typed_errors(records: CoordinatorRecords) -> None:
    random = Random(records.topic)
    refused = 0
    for key_class, value_class in records.kinds.values():
        key = records.encode_key(populated(key_class, 0))
        for version in spec_of(value_class).versions.all:
            value = records.encode_value(populated(value_class, version), version)
            for _ in range(ROUNDS):
                try:
                    records.decode(mutate(key, random, [value], keep=2), mutate(value, random, [key], keep=2))
                except MalformedBytes:
                    refused += 1
    assert refused > 0
