"""Each operator of Kafka Streams as a pipeline. The guide explains them; tests check what each emits.

ottla pipeline run examples/operators.py --available-now
"""

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from ottla.pipelines import pipeline, table, topic

PAYMENT = "id string, customer string, amount double, ts timestamp"
payments = topic("payments", schema=PAYMENT)
shipments = topic("shipments", schema="payment string, shipped timestamp")
customers = table("customers", schema="customer string, country string")


# filter, mapValues, selectKey
@pipeline("large_payments", to="large-payments", key="customer")
def large_payments(payments=payments):
    return payments.where("amount > 90").select("customer", "id", (F.col("amount") * 100).alias("cents"))


# split, branch
@pipeline("sorted_payments", to=("cheap", "dear"), key="id")
def sorted_payments(payments=payments):
    fields = payments.select("id", "amount")
    return {"cheap": fields.where("amount < 50"), "dear": fields.where("amount >= 50")}


# groupByKey, count, aggregate, reduce: a KTable
@pipeline("totals", to="totals", mode="update", key="customer")
def totals(payments=payments):
    return payments.groupBy("customer").agg(
        F.count("*").alias("payments"), F.round(F.sum("amount"), 2).alias("spent")
    )


# windowedBy(TimeWindows), suppress(untilWindowCloses)
@pipeline("spend_per_minute", to="spend-per-minute", key="customer")
def spend_per_minute(payments=payments):
    return (
        payments.withWatermark("ts", "1 minute")
        .groupBy(F.window("ts", "1 minute"), "customer")
        .agg(F.round(F.sum("amount"), 2).alias("spent"))
        .select("window.start", "customer", "spent")
    )


# windowedBy(SessionWindows)
@pipeline("visits", to="visits", key="customer")
def visits(payments=payments):
    return (
        payments.withWatermark("ts", "1 minute")
        .groupBy(F.session_window("ts", "30 seconds"), "customer")
        .agg(F.count("*").alias("payments"))
        .select("session_window.start", "session_window.end", "customer", "payments")
    )


# KStream.join(KStream, JoinWindows)
@pipeline("delivered", to="delivered", key="id")
def delivered(payments=payments, shipments=shipments):
    paid = payments.withWatermark("ts", "1 minute")
    sent = shipments.withWatermark("shipped", "1 minute")
    within = F.expr("payment = id AND shipped BETWEEN ts AND ts + INTERVAL 5 MINUTES")
    return paid.join(sent, within).select("id", "customer", "ts", "shipped")


# KStream.leftJoin(KTable or GlobalKTable)
@pipeline("payments_with_country", to="payments-with-country", key="customer")
def payments_with_country(payments=payments, customers=customers):
    return payments.join(customers.select("customer", "country"), "customer", "left").select(
        "id", "customer", "country"
    )


# the pattern of a store of seen ids, and dropDuplicates
@pipeline("payments_once", to="payments-once", key="id")
def payments_once(payments=payments):
    return (
        payments.withWatermark("ts", "1 minute")
        .dropDuplicatesWithinWatermark(["id"])
        .select("id", "customer", "amount")
    )


# process, transformValues with a state store
@pipeline("records_of_customers", to="records-of-customers", mode="update", key="customer")
def records_of_customers(payments=payments):
    return payments.groupBy("customer").applyInPandasWithState(
        _largest, "customer string, largest double, seen long", "largest double, seen long", "update",
        GroupStateTimeout.NoTimeout,
    )  # fmt: skip


def _largest(
    key: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState
) -> Iterator[pd.DataFrame]:
    largest, seen = state.get if state.exists else (0.0, 0)
    for frame in frames:
        largest, seen = max(largest, float(frame["amount"].max())), seen + len(frame)
    state.update((largest, seen))
    yield pd.DataFrame({"customer": [key[0]], "largest": [largest], "seen": [seen]})
