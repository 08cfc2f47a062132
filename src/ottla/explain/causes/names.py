"""How producers and keys are called in answers."""

from collections.abc import Mapping

from ottla.explain.evidence.logs import RecordFacts


def writer_name(record: RecordFacts, names: Mapping[int, str]) -> str:
    return producer_name(record.batch.producer_id, names)


def producer_name(producer_id: int, names: Mapping[int, str]) -> str:
    if producer_id < 0:
        return "a producer without an id"
    return f"producer {producer_id}" + (f" ({names[producer_id]})" if producer_id in names else "")


def key_text(key: bytes | None) -> str:
    return "none" if key is None else repr(key.decode(errors="replace"))
