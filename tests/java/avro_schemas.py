"""Asks Avro's own Java classes. Their jar comes with Spark."""

import json
from typing import Any

from tests.java.oracle import Oracle


def ask_avro(oracle: Oracle, reader: str, writer: str) -> Any:
    """Return what Avro says of a reader's and a writer's schema."""
    return json.loads(oracle.ask("AvroSchemas", json.dumps({"reader": reader, "writer": writer})))
