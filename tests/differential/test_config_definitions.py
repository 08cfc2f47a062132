"""The golden table of configs is what Apache Kafka's own classes say."""

import subprocess

from tests.golden.configs import TABLE
from tests.java.jars import compiled, java_command


def test_the_golden_table_is_what_kafkas_classes_define() -> None:
    command = java_command(compiled("ConfigDefinitions.java"), "ConfigDefinitions")
    printed = subprocess.run(
        command, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert printed.stdout == TABLE.read_text()
