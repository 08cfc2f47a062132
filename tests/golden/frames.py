"""Frames that clients and brokers of Apache Kafka 4.3.1 exchanged, recorded from the wire.

`frames.jsonl.gz` has one JSON object per frame: `api`, `key`, `version`, `dir` (req or resp), `corr` (the
correlation id), `conn` (pairs requests with responses), `client`, `errors` (the codes in a response), `hex`
(the whole frame with its size), and a `note` where there is something odd about it.
"""

import gzip
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

RECORDING = Path(__file__).parent / "frames.jsonl.gz"
SURPLUS_BYTES = "client sent surplus bytes after the body"


@dataclass(frozen=True)
class Frame:
    """One recorded frame."""

    api_key: int
    version: int
    is_request: bool
    correlation_id: int
    connection: str
    client: str
    error_codes: tuple[int, ...]
    note: str
    data: bytes
    """The frame with its size field."""

    @property
    def payload(self) -> bytes:
        """The frame without its size field."""
        return self.data[4:]


@cache
def load_frames() -> tuple[Frame, ...]:
    """Return all recorded frames."""
    lines = gzip.decompress(RECORDING.read_bytes()).splitlines()
    return tuple(_read(json.loads(line)) for line in lines)


def _read(line: dict[str, object]) -> Frame:
    match line:
        case {
            "key": int(key), "version": int(version), "dir": str(direction), "corr": int(correlation_id),
            "conn": str(connection), "client": str(client), "errors": list(errors), "hex": str(text),
        }:  # fmt: skip
            return Frame(
                key, version, direction == "req", correlation_id, connection, client, tuple(errors),
                str(line.get("note", "")), bytes.fromhex(text),
            )  # fmt: skip
        case _:
            raise AssertionError(f"not a recorded frame: {line}")
