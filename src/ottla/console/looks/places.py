"""Places in a topic, as addresses of pages carry them: times, and an offset for each partition."""

import base64
import binascii
import re
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

_AGO: Final = re.compile(r"(\d{1,9})\s*(ms|s|m|min|h|d|w)")
_UNITS_MS: Final = {
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 604_800_000,
}
_MILLISECONDS: Final = re.compile(r"\d{12,14}")
_PLAIN_MAX: Final = 24
_PACKED_BYTES_MAX: Final = 1 << 20


class UnreadablePlace(ValueError):
    """Text that is no time, or no place."""


def parse_time(text: str, now_ms: int) -> int:
    """Read a time: `2h` ago, ISO 8601 (UTC if it names no zone), or milliseconds since 1970."""
    ago = _AGO.fullmatch(text.strip())
    if ago is not None:
        return now_ms - int(ago[1]) * _UNITS_MS[ago[2]]
    if _MILLISECONDS.fullmatch(text):
        return int(text)
    try:
        parsed = datetime.fromisoformat(text.strip())
    except ValueError:
        raise UnreadablePlace(
            f"{text[:40]!r} is not a time: write 2026-01-31T12:00+01:00 (without a zone: UTC), or 2h for two "
            "hours ago"
        ) from None
    if parsed.tzinfo is None:
        parsed = parsed.replace(tzinfo=UTC)
    return int(parsed.timestamp() * 1000)


def encode_offsets(offsets: Mapping[int, int]) -> str:
    """Return an offset for each partition as text. Many partitions are packed."""
    text = "_".join(f"{number}.{offset}" for number, offset in sorted(offsets.items()))
    if len(offsets) <= _PLAIN_MAX:
        return text
    return "z" + base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode().rstrip("=")


def decode_offsets(text: str) -> dict[int, int]:
    """Read what `encode_offsets` has written. Raises UnreadablePlace."""
    if not text:
        return {}
    try:
        if text.startswith("z"):
            unpacking = zlib.decompressobj()
            packed = base64.urlsafe_b64decode(text[1:] + "=" * (-len(text[1:]) % 4))
            text = unpacking.decompress(packed, _PACKED_BYTES_MAX).decode()
        pairs = (part.split(".") for part in text.split("_"))
        return {int(number): int(offset) for number, offset in pairs}
    except (ValueError, zlib.error, binascii.Error) as error:
        raise UnreadablePlace(
            "the address names no place in the topic: go back to the newest records"
        ) from error
