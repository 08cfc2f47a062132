"""What Kafka's own `DumpLogSegments` printed of the golden directories, parsed.

A dump has a line for every batch (`baseOffset: 0 lastOffset: …`, for old messages `offset: 3 position: …`)
and below it one for every record (`| offset: 0 CreateTime: …`). Dumps of internal topics print decoded keys
and values instead of text. Those of the metadata log print no record fields, and of control records nothing.

Fields are `name: value`, in a fixed order. Key and payload come last and may hold anything, also line breaks.
"""

import gzip
import re
from dataclasses import dataclass, field
from functools import cache

from tests.golden.directories import DATA

_DUMPING = re.compile(r"^Dumping (?:golden/)?(\S+)$", re.MULTILINE)
# Where a new entry starts. Anything else is the rest of a payload that has line breaks.
_ENTRY = re.compile(r"^(?=(?:baseOffset|offset): -?\d|\| |Log starting|Snapshot end)", re.MULTILINE)
_FIELD = re.compile(r"(\w+): (\S*) ?")
# What is left for the rest of a record's line.
_NO_FIELDS = ("key", "payload", "endTxnMarker", "LeaderChange")
_HEADER_KEYS = re.compile(r"headerKeys: \[(.*?)\] ?")
_KEY_AND_PAYLOAD = re.compile(r"(?:key: (.*?))?(?: ?payload: (.*))?", re.DOTALL)


@dataclass
class DumpedRecord:
    """The line of a record: its fields, its header keys joined by commas, and what stands after those."""

    fields: dict[str, str]
    header_keys: str
    rest: str

    @property
    def key_and_payload(self) -> tuple[str | None, str | None]:
        found = _KEY_AND_PAYLOAD.fullmatch(self.rest)
        assert found is not None, self.rest
        return found[1], found[2]


@dataclass
class DumpedBatch:
    """The line of a batch, with those of its records."""

    fields: dict[str, str]
    records: list[DumpedRecord] = field(default_factory=list)


@cache
def load_dump(name: str) -> dict[str, list[DumpedBatch]]:
    """Return the batches of a dump by file, whose names are relative to where the archives are unpacked."""
    text = gzip.decompress((DATA / f"{name}.txt.gz").read_bytes()).decode("utf-8")
    parts = _DUMPING.split(text)
    return {path: _parse_file(body) for path, body in zip(parts[1::2], parts[2::2], strict=True)}


def _parse_file(body: str) -> list[DumpedBatch]:
    batches: list[DumpedBatch] = []
    for entry in _ENTRY.split(body):
        line = entry.removesuffix("\n")
        if line.startswith(("baseOffset:", "offset:")):
            batches.append(DumpedBatch(dict(_FIELD.findall(line))))
        elif line.startswith("| "):
            batches[-1].records.append(_parse_record(line[2:]))
    return batches


def _parse_record(line: str) -> DumpedRecord:
    fields: dict[str, str] = {}
    header_keys = ""
    position = 0
    while (found := _FIELD.match(line, position)) and found[1] not in _NO_FIELDS:
        if keys := _HEADER_KEYS.match(line, position):
            header_keys = keys[1]
            position = keys.end()
        else:
            fields[found[1]] = found[2]
            position = found.end()
    return DumpedRecord(fields, header_keys, line[position:])
