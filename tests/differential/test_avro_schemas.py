"""Avro schemas: who can read what, and how a schema is printed, as Avro's own Java classes have it."""

import json
from collections import Counter
from random import Random
from typing import Any

from tests.differential.avro_pairs import Schemas
from tests.java.avro_schemas import ask_avro
from tests.java.oracle import Oracle

from ottla.schemas.avro.schema import AvroSchema
from ottla.schemas.errors import InvalidSchema

PAIRS = 1000


def test_verdicts_and_texts_are_those_of_avros_own_classes(oracle: Oracle) -> None:
    schemas = Schemas(Random("avro"))
    pairs = [tuple(json.dumps(one) for one in schemas.pair()) for _ in range(PAIRS)]
    # Each pair in both directions.
    pairs += [(writer, reader) for reader, writer in pairs]
    answers = [ask_avro(oracle, reader, writer) for reader, writer in pairs]
    wrong = []
    verdicts = Counter(said["verdict"] for said in answers)
    for (reader, writer), said in zip(pairs, answers, strict=True):
        ours = _say(reader, writer)
        if ours != said:
            wrong.append(f"reader {reader}, writer {writer}: Avro says {said}, we say {ours}")
    assert not wrong, f"{len(wrong)} of {len(pairs)}, the first: {wrong[0]}"
    # Enough of each kind that the comparison says something.
    assert min(verdicts["compatible"], verdicts["incompatible"], verdicts["invalid"]) > 100, verdicts


def _say(reader: str, writer: str) -> Any:
    """Answer as the Java program does."""
    try:
        ours, theirs = AvroSchema(reader), AvroSchema(writer)
        ours.check()
        theirs.check()
        found = [[item.kind, item.path] for item in ours.differences(theirs)]
    except InvalidSchema:
        return {"verdict": "invalid"}
    verdict = "incompatible" if found else "compatible"
    return {"verdict": verdict, "text": ours.text, "incompatibilities": found}
