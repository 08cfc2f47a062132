"""Asks Avro's own Java classes. Their jar comes with Spark."""

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyspark
from tests.java.jars import compiled, java_command

JARS = Path(pyspark.__file__).parent / "jars"


def ask_avro(pairs: Iterable[tuple[str, str]]) -> list[Any]:
    """Return what Avro says of pairs of a reader's and a writer's schema."""
    questions = "".join(json.dumps({"reader": reader, "writer": writer}) + "\n" for reader, writer in pairs)
    command = java_command(compiled("AvroSchemas.java", f"{JARS}/*"), "AvroSchemas")
    done = subprocess.run(
        command, input=questions.encode(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]
