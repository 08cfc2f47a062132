"""A thousand pairs each of JSON Schemas and of Protobuf files, with what Confluent's registry says of them.

`json_schema_pairs.py` and `protobuf_pairs.py` made the pairs. The comparison of Confluent's Schema Registry
8.1.5 was asked in both directions, with json-sKema 0.29 and the correction for unevaluated keywords of 0.30.
Pairs were left out that it refuses, or where it fails.
"""

import gzip
import json
from collections import Counter
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.golden import json_schema_pairs, protobuf_pairs

from ottla.schemas.errors import InvalidSchema
from ottla.schemas.json_schema.schema import JsonSchema
from ottla.schemas.parsed import ParsedSchema
from ottla.schemas.parsing import parse_schema
from ottla.schemas.protobuf.schema import ProtobufSchema

RECORDED = Path(__file__).parent / "schema_verdicts.jsonl.gz"


@cache
def _pairs(kind: str) -> list[Any]:
    with gzip.open(RECORDED, "rt") as lines:
        return [pair for pair in map(json.loads, lines) if pair["type"] == kind]


@pytest.mark.parametrize("kind", ["JSON", "PROTOBUF"])
def test_verdicts_are_those_of_confluents_registry(kind: str) -> None:
    wrong = []
    for pair in _pairs(kind):
        old, new = _parse(pair, "old"), _parse(pair, "new")
        for level, reader, writer in (("backward", new, old), ("forward", old, new)):
            ours = sorted({item.kind for item in reader.differences(writer)})
            if bool(ours) != bool(pair[level]):
                wrong.append(f"{level}, {pair['old']} -> {pair['new']}: {pair[level]}, we say {ours}")
    assert not wrong, f"{len(wrong)} wrong, the first: {wrong[0]}"


@pytest.mark.parametrize("kind", ["JSON", "PROTOBUF"])
def test_the_pairs_are_worth_comparing(kind: str) -> None:
    pairs = _pairs(kind)
    verdicts = Counter(bool(pair[level]) for pair in pairs for level in ("backward", "forward"))
    kinds = {name for pair in pairs for level in ("backward", "forward") for name in pair[level]}
    assert len(pairs) == 1000
    assert min(verdicts.values()) > 600, verdicts
    assert len(kinds) >= {"JSON": 35, "PROTOBUF": 11}[kind], sorted(kinds)


def test_a_schema_reads_what_it_wrote() -> None:
    random = Random("itself")
    for _ in range(100):
        for given in json_schema_pairs.Schemas(random).pair():
            _check_that_it_reads_itself(JsonSchema(json.dumps(given)))
        for file in protobuf_pairs.Schemas(random).pair():
            references = protobuf_pairs.references_of(file)
            _check_that_it_reads_itself(ProtobufSchema(protobuf_pairs.text_of(file), (), references))


def _check_that_it_reads_itself(schema: Any) -> None:
    try:
        schema.check()
    except InvalidSchema:
        return  # What a reference leads to was renamed.
    again = schema.normalized()
    assert again.differences(schema) == schema.differences(again) == [], schema.text


def _parse(pair: Any, which: str) -> Any:
    references = pair.get(f"{which}_references", {})
    schema: ParsedSchema = parse_schema(pair["type"], pair[which], (), references)
    return schema
