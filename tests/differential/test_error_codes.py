"""The table that our error codes are held against is what Apache Kafka's enumeration says."""

import subprocess

from tests.golden.test_error_codes import TABLE
from tests.java.jars import compiled, java_command


def test_table_is_what_kafka_says() -> None:
    command = java_command(compiled("ErrorCodes.java"), "ErrorCodes")
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert printed == TABLE.read_text()
