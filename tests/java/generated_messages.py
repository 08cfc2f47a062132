"""Asks Apache Kafka's generated classes what they read in some bytes, and how they would write it."""

import json
import subprocess
import zipfile
from functools import cache
from typing import Any, NamedTuple

from tests.java.jars import LIBS, compiled, java_command


class Refused(Exception):
    """Kafka's class did not read the bytes, or could not write what it had read."""


class Reading(NamedTuple):
    """What Kafka's class made of some bytes."""

    written: bytes
    """The same message, as Kafka writes it."""
    values: dict[str, Any]
    """Its fields, as Kafka's converter to JSON shows them."""


class GeneratedMessages:
    """A Java process that answers one question at a time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            java_command(compiled("GeneratedMessages.java"), "GeneratedMessages"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )

    def ask(self, message: str, version: int, data: bytes, write_version: int | None = None) -> Reading:
        """Have Kafka's class of this message read bytes in a version, and write them in that or another."""
        write_version = version if write_version is None else write_version
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{_java_classes()[message]} {version} {write_version} {data.hex()}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer or answer.startswith("!"):
            raise Refused(
                f"{message} v{version} to v{write_version}: {answer.rstrip() or 'the Java process ended'}"
            )
        written, _, values = answer.partition(" ")
        return Reading(bytes.fromhex(written), json.loads(values))

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


@cache
def _java_classes() -> dict[str, str]:
    """Return the class of each message: requests, responses and headers have `Data` after their name."""
    ending = "JsonConverter.class"
    classes = {}
    for jar in LIBS.glob("kafka*.jar"):
        with zipfile.ZipFile(jar) as archive:
            for path in archive.namelist():
                if path.endswith(ending) and "$" not in path:
                    name = path.removesuffix(ending).replace("/", ".")
                    short = name.rpartition(".")[2]
                    is_wrapped = short.endswith(("RequestData", "ResponseData", "HeaderData"))
                    classes[short.removesuffix("Data") if is_wrapped else short] = name
    return classes
