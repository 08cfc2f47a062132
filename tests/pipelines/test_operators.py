"""Each pipeline of examples/operators.py emits the right rows: those that plain Python computes."""

import random
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from tests.pipelines.records import committed, committed_json, create_topic, produce, produce_json
from tests.support.ottla_node import OttlaNode

from ottla.pipelines.definition import AVAILABLE_NOW
from ottla.pipelines.link import Link
from ottla.pipelines.loading import load_pipelines
from ottla.pipelines.spark.runner import RunSettings, run_pipelines
from ottla.pipelines.status import QueryStatus, read_statuses

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).parents[2] / "examples"
START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
# What does not fit, and why.
BAD = {
    b"{": b'the value is not JSON at character 1: ""',
    b'{"id": "x", "amount": "much"}': b"field 'customer' is missing",
    b'{"id": "x", "customer": "c1", "amount": "much"}': b"field 'amount' is \"much\", and not a number",
}


class Ran(NamedTuple):
    bootstrap: str
    payments: list[dict[str, Any]]
    shipments: list[dict[str, Any]]
    countries: dict[str, str]
    directory: Path
    statuses: list[QueryStatus]


def iso(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def make_payments() -> list[dict[str, Any]]:
    rng = random.Random(7)
    found = []
    moment = START
    for number in range(400):
        moment += timedelta(seconds=rng.choice((0, 1, 2, 40)))
        row = {
            "id": f"p{number}",
            "customer": f"c{rng.randrange(6)}",
            "amount": rng.randrange(100, 10_000) / 100,
            "ts": iso(moment),
        }
        found += [row] * (2 if rng.random() < 0.1 else 1)
    return found


def moment_of(row: dict[str, Any], field: str = "ts") -> datetime:
    return datetime.fromisoformat(row[field])


@pytest.fixture
def ran(node: OttlaNode, spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Run all examples once over the same records, in one session."""
    bootstrap = node.bootstrap
    payments = make_payments()
    shipments = [
        {"payment": row["id"], "shipped": iso(moment_of(row) + timedelta(minutes=place % 8))}
        for place, row in enumerate({row["id"]: row for row in payments}.values())
        if place % 3 == 0
    ]
    countries = {f"c{number}": f"country {number}" for number in range(5)}
    create_topic(bootstrap, "customers", config={"cleanup.policy": "compact"})
    produce_json(bootstrap, "customers", [{"customer": c, "country": "old"} for c in countries], "customer")
    rows = [{"customer": c, "country": country} for c, country in countries.items()]
    produce_json(bootstrap, "customers", rows, "customer")
    produce(bootstrap, "customers", [(b"c0", None)])
    # The last record is far ahead in time: it closes all windows before it.
    end = {"id": "end", "customer": "end", "amount": 0.0, "ts": iso(START + timedelta(days=1))}
    # One partition, since order across partitions is nobody's promise, and lateness would follow from it.
    for topic, last in (("payments", end), ("shipments", {"payment": "end", "shipped": end["ts"]})):
        create_topic(bootstrap, topic, 1)
        produce_json(bootstrap, topic, payments if topic == "payments" else shipments)
        produce(bootstrap, topic, [(None, value) for value in BAD] if topic == "payments" else [])
        produce_json(bootstrap, topic, [last])
    directory = tmp_path_factory.mktemp("operators") / "pipelines"
    settings = RunSettings({"bootstrap.servers": bootstrap}, directory, trigger=AVAILABLE_NOW)
    pipelines = list(load_pipelines(EXAMPLES / "operators.py"))
    statuses = []
    # One after the other: Spark gives a process of Python ten seconds to start, and machines may be busy.
    for definition in pipelines:
        statuses += run_pipelines([definition], settings, session=spark)
    return Ran(bootstrap, payments, shipments, countries, directory, statuses)


def check_all_ran_to_the_end(ran: Ran) -> None:
    assert {status.state for status in ran.statuses} == {"done"}, ran.statuses
    assert {status.name for status in read_statuses(ran.directory)} == {
        status.name for status in ran.statuses
    }


def check_filter_and_map(ran: Ran) -> None:
    expected = Counter(
        (row["customer"], row["id"], round(row["amount"] * 100)) for row in ran.payments if row["amount"] > 90
    )
    found = committed_json(ran.bootstrap, "large-payments")
    assert Counter((row["customer"], row["id"], round(row["cents"])) for row in found) == expected


def check_key_is_the_column_that_was_named(ran: Ran) -> None:
    for message in committed(ran.bootstrap, "large-payments"):
        assert message.key() in message.value()


def check_split_into_two_topics(ran: Ran) -> None:
    for topic, is_dear in (("cheap", False), ("dear", True)):
        expected = Counter(row["id"] for row in ran.payments if (row["amount"] >= 50) == is_dear)
        found = Counter(row["id"] for row in committed_json(ran.bootstrap, topic))
        found.pop("end", None)
        assert found == expected


def check_update_mode_leaves_the_last_total_of_each_key(ran: Ran) -> None:
    counts: Counter[str] = Counter(row["customer"] for row in ran.payments)
    spent: dict[str, float] = defaultdict(float)
    for row in ran.payments:
        spent[row["customer"]] += row["amount"]
    found = {row["customer"]: row for row in committed_json(ran.bootstrap, "totals")}
    for customer, count in counts.items():
        assert found[customer]["payments"] == count
        assert found[customer]["spent"] == pytest.approx(spent[customer], abs=0.01)


def check_windows(ran: Ran) -> None:
    expected: dict[tuple[str, str], float] = defaultdict(float)
    for row in ran.payments:
        start = moment_of(row).replace(second=0, microsecond=0)
        expected[iso(start), row["customer"]] += row["amount"]
    found = {
        (row["start"], row["customer"]): row["spent"]
        for row in committed_json(ran.bootstrap, "spend-per-minute")
    }
    assert found.keys() == expected.keys()
    assert all(found[key] == pytest.approx(expected[key], abs=0.01) for key in expected)


def check_sessions(ran: Ran) -> None:
    gap = timedelta(seconds=30)
    expected = []
    for customer in {row["customer"] for row in ran.payments}:
        session: list[datetime] = []
        moments = sorted(moment_of(row) for row in ran.payments if row["customer"] == customer)
        for moment in moments:
            # Spark's sessions touch: one that ends when the next begins is another.
            if session and moment >= session[-1] + gap:
                expected.append((iso(session[0]), iso(session[-1] + gap), customer, len(session)))
                session = []
            session.append(moment)
        expected.append((iso(session[0]), iso(session[-1] + gap), customer, len(session)))
    found = [
        (row["start"], row["end"], row["customer"], row["payments"])
        for row in committed_json(ran.bootstrap, "visits")
    ]
    assert sorted(found) == sorted(expected)


def check_join_of_two_streams(ran: Ran) -> None:
    shipped = {row["payment"]: row["shipped"] for row in ran.shipments}
    expected = Counter(
        (row["id"], shipped[row["id"]])
        for row in ran.payments
        if row["id"] in shipped
        and moment_of(row)
        <= datetime.fromisoformat(shipped[row["id"]])
        <= moment_of(row) + timedelta(minutes=5)
    )
    found = Counter((row["id"], row["shipped"]) for row in committed_json(ran.bootstrap, "delivered"))
    found.pop(("end", iso(START + timedelta(days=1))), None)
    assert found == expected


def check_join_with_a_table_knows_the_latest_value_and_tombstones(ran: Ran) -> None:
    latest = {**ran.countries, "c0": None}
    expected = Counter((row["id"], latest.get(row["customer"])) for row in ran.payments)
    found = Counter(
        (row["id"], row.get("country")) for row in committed_json(ran.bootstrap, "payments-with-country")
    )
    found.pop(("end", None), None)
    assert found == expected


def check_deduplication(ran: Ran) -> None:
    found = Counter(row["id"] for row in committed_json(ran.bootstrap, "payments-once"))
    found.pop("end", None)
    assert found == Counter({row["id"] for row in ran.payments})


def check_state(ran: Ran) -> None:
    largest: dict[str, float] = defaultdict(float)
    seen: Counter[str] = Counter()
    for row in ran.payments:
        largest[row["customer"]] = max(largest[row["customer"]], row["amount"])
        seen[row["customer"]] += 1
    found = {row["customer"]: row for row in committed_json(ran.bootstrap, "records-of-customers")}
    for customer, count in seen.items():
        assert (found[customer]["largest"], found[customer]["seen"]) == (largest[customer], count)


def check_values_that_cannot_be_read_are_dead_letters_with_a_reason(ran: Ran) -> None:
    letters = committed(ran.bootstrap, "large_payments.dead_letters")
    assert sorted(message.value() for message in letters) == sorted(BAD)
    for message in letters:
        headers = dict(message.headers())
        assert headers["ottla.reason"] == BAD[message.value()]
        assert headers["ottla.topic"] == b"payments"


def check_progress_is_a_consumer_group(ran: Ran) -> None:
    link = Link({"bootstrap.servers": ran.bootstrap})
    try:
        offsets = link.run(link.group_offsets.list("large_payments"))
    finally:
        link.close()
    assert sum(item.offset for item in offsets.values()) == len(ran.payments) + len(BAD) + 1


CHECKS = [value for name, value in list(globals().items()) if name.startswith("check_")]


@pytest.mark.timeout(1800)
@pytest.mark.thorough(guard="tests/pipelines/test_delivery.py")
def test_each_operator_emits_the_right_rows(ran: Ran) -> None:
    """One test, since all the examples run once, together, in one session."""
    assert len(CHECKS) == 13
    for check in CHECKS:
        check(ran)
