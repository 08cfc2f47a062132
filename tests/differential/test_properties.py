"""Properties files, sane and otherwise, mean to us what they mean to Java."""

import random
import re

from tests.java.oracle import Oracle

from ottla.model.properties import MalformedProperties, iter_properties

PIECES = [
    piece.encode("latin-1") for piece in ("a", "b", "=", ":", " ", "\t", "\f", "\n", "\r", "\r\n", "#", "!")
]
PIECES += [rb"\u00e4", rb"\u12", rb"\n", b"\\", b"\\\\", b"\xe4"]
LONE_BACKSLASH = re.compile(rb"(?:^|[\r\n])[ \t\f]*\\(?:[\r\n]|$)")


def test_thousands_of_files_mean_the_same_to_java(oracle: Oracle) -> None:
    rng = random.Random(7)
    files = [b"".join(rng.choices(PIECES, k=rng.randrange(12))) for _ in range(10_000)]
    # Java is of two minds about a line with nothing but a backslash: at the end of a file it may be a pair.
    files = [text for text in files if not LONE_BACKSLASH.search(text)]
    for text in files:
        assert load(text) == oracle.ask("LoadProperties", text.hex()), text


def load(text: bytes) -> str:
    """Write the pairs of a file down as the Java program does."""
    try:
        pairs = {hex_of(key): hex_of(value) for _, key, value in iter_properties(text)}
    except MalformedProperties:
        return "malformed"
    return "".join(f"{key}={value}," for key, value in sorted(pairs.items()))


def hex_of(text: str) -> str:
    return text.encode("utf-16-be", "surrogatepass").hex()
