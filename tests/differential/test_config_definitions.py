"""The golden table of configs is what Apache Kafka's own classes say."""

import json

from tests.golden.configs import TABLE
from tests.java.oracle import Oracle


def test_the_golden_table_is_what_kafkas_classes_define(oracle: Oracle) -> None:
    table = json.loads(oracle.ask("ConfigDefinitions", "{}"))["table"]
    assert table == TABLE.read_text()
