"""The table that our error codes are held against is what Apache Kafka's enumeration says."""

import json

from tests.golden.test_error_codes import TABLE
from tests.java.oracle import Oracle


def test_table_is_what_kafka_says(oracle: Oracle) -> None:
    assert json.loads(oracle.ask("ErrorCodes", "{}"))["table"] == TABLE.read_text()
