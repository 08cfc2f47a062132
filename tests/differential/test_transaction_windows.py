"""The recorded answers are those that a live Apache Kafka gives at every moment of a transaction.

They are in `tests/golden`, where Ottla is held to them without Java. `OTTLA_RECORD=1` writes them anew.
"""

import os
import time
from functools import partial
from pathlib import Path

import pytest
from tests.differential.transaction_windows import HEALTHY, STUCK, ask_all, create_on
from tests.golden.transaction_windows import recorded_answers, write_table
from tests.java.apache_kafka import ApacheKafka
from tests.support.plain_client import PlainClient
from tests.support.readiness import start_coordinators, wait_until_led


@pytest.mark.live_oracle
def test_apache_kafka_answers_as_recorded(tmp_path: Path) -> None:
    pause = partial(time.sleep, 0.01)
    # Apache Kafka takes partitions without a leader for deleted ones, and completes the transaction.
    properties = {"broker.session.timeout.ms": "3600000"}
    with ApacheKafka(tmp_path / "0", properties) as first, PlainClient(first.bootstrap) as client:
        start_coordinators(client)
        second = ApacheKafka(tmp_path / "1", format_options=("--no-initial-controllers",))
        listener = f"PLAINTEXT://{second.bootstrap}"
        second.properties |= {
            "process.roles": "broker",
            "node.id": "1",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{first.controller_port}",
            "listeners": listener,
            "advertised.listeners": listener,
        }
        with second:
            create_on(client, HEALTHY, 0, pause)
            create_on(client, STUCK, 1, pause)
            wait_until_led(client, HEALTHY)
            second.kill()
        answers = ask_all(client, pause)
        # It would wait for the other one, which it takes for alive.
        first.kill()
    if os.environ.get("OTTLA_RECORD"):
        write_table(answers)
    assert answers == recorded_answers()
