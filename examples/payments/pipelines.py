"""The pipelines of the payments example: clean, judge, add up. Each delivers exactly once.

payments -> clean -> payments-clean -> fraud   -> alerts
                                    -> revenue -> revenue-per-minute
"""

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pandas as pd
from payments import Memory, Payment, judge
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from ottla.pipelines import pipeline, table, topic

PAYMENT = "id string, customer string, amount double, city string, ts_ms long"
CROWDS = 4
clean_payments = topic("payments-clean", schema=PAYMENT)


@pipeline("clean", to="payments-clean", key="customer")
def clean(payments=topic("payments", schema=PAYMENT)):
    """Let each payment through once, though clients may send it twice."""
    return (
        payments.withColumn("ts", F.timestamp_millis("ts_ms"))
        .withWatermark("ts", "10 minutes")
        .dropDuplicatesWithinWatermark(["id"])
        .drop("ts")
        # One task, so one transaction: who reads a partition sees all that a batch has for it, or nothing.
        # With several a reader may stop in the middle, and the judge see a customer's later payments first.
        .repartition(1)
    )


@pipeline("fraud", to="alerts", key="customer")
def fraud(payments=clean_payments, customers=table("customers", schema="customer string, country string")):
    """Judge each payment by what its customer did before, and say where the customer is at home."""
    known = payments.join(customers.select("customer", "country"), "customer", "left")
    # A group costs Spark about two milliseconds in Python, however small it is. So customers share groups: by
    # themselves, the 500 of them would take a second of each batch.
    crowds = known.withColumn("crowd", F.pmod(F.crc32("customer"), F.lit(CROWDS)))
    return crowds.groupBy("crowd").applyInPandasWithState(
        _alerts, "id string, customer string, country string, amount double, ts_ms long, reasons string",
        "memories string", "append", GroupStateTimeout.NoTimeout,
    )  # fmt: skip


@pipeline("revenue", to="revenue-per-minute", mode="update", key="minute", trigger="5 seconds")
def revenue(payments=clean_payments):
    """Add up what was paid in each minute. The last value of a minute is the right one.

    Nobody waits for it, as somebody waits for an alert: a batch every five seconds leaves them the machine.
    """
    minute = F.date_trunc("minute", F.timestamp_millis("ts_ms"))
    return payments.groupBy(minute.alias("minute")).agg(
        F.count("*").alias("payments"), F.round(F.sum("amount"), 2).alias("revenue")
    )


def _alerts(
    _crowd: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState
) -> Iterator[pd.DataFrame]:
    told = json.loads(state.get[0]) if state.exists else {}
    memories = {customer: Memory(**memory) for customer, memory in told.items()}
    # Spark promises no order within a batch, and order is what this is about.
    rows = pd.concat(list(frames)).sort_values(["ts_ms", "id"])
    found = []
    columns = (rows[name].tolist() for name in ("id", "customer", "amount", "city", "ts_ms", "country"))
    for id_, customer, amount, city, ts_ms, country in zip(*columns, strict=True):
        memory = memories.setdefault(customer, Memory([]))
        reasons = judge(memory, Payment(id_, customer, amount, city, ts_ms))
        if reasons:
            found.append((id_, customer, country, amount, ts_ms, "+".join(reasons)))
    state.update((json.dumps({customer: asdict(memory) for customer, memory in memories.items()}),))
    if found:
        yield pd.DataFrame(found, columns=["id", "customer", "country", "amount", "ts_ms", "reasons"])
