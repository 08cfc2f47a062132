"""`ottla hot`: which keys and partitions carry the load."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ottla.cli.explain.running import with_access
from ottla.cli.numbers import RECORDS
from ottla.cli.output import Row, json_option, say, show_one, show_rows
from ottla.cli.profiles import cluster_options

if TYPE_CHECKING:
    from ottla.explain.access import Access
    from ottla.explain.hot import Heat


@click.command()
@click.argument("topic")
@cluster_options
@json_option
@click.option("--count", type=RECORDS, default=50_000, show_default=True, help="How many records to count.")
def hot(topic: str, properties: dict[str, str], as_json: bool, count: int) -> None:
    """Show which keys and partitions of TOPIC carry the load, by its newest records.

    Also shows what other numbers of partitions, or a finer key, would do to the busiest partition.
    """

    async def work(access: "Access") -> "Heat":
        from ottla.explain.evidence.logs import partitions_of, sample_log
        from ottla.explain.hot import measure_heat

        partitions = await partitions_of(access, [topic])
        if not partitions:
            await access.admin.topics.describe(topic)
        sample = await sample_log(access, partitions, count)
        return measure_heat(topic, len(partitions), sample.records)

    heat = with_access(properties, work)
    seen = max(heat.records, 1)
    partitions = [
        {"partition": number, "records": records, "share": round(records / seen, 3)}
        for number, records in sorted(heat.by_partition.items())
    ]
    keys = [
        {
            "key": key.decode(errors="replace"),
            "records": records,
            "at_most_too_high_by": error,
            "share": round(records / seen, 3),
        }
        for key, records, error in heat.keys
    ]
    facts = {
        "topic": topic,
        "records": heat.records,
        "without_key": heat.without_key,
        "busiest_partition": round(heat.busiest_share, 3),
    }
    forecasts = [
        {"change": change, "busiest_partition": round(share, 3)} for change, share in heat.forecasts.items()
    ]
    if as_json:
        show_one({**facts, "partitions": partitions, "keys": keys, "forecasts": forecasts}, as_json)
        return
    show_one({**facts, "busiest_partition": f"{heat.busiest_share:.0%} of the records"}, as_json)
    tables: tuple[Sequence[Row], ...] = (partitions, keys, forecasts)
    for rows in tables:
        say()
        show_rows(_shares(rows), as_json, "no record has a key")


def _shares(rows: Sequence[Row]) -> list[Row]:
    return [
        {
            name: f"{value:.0%}"
            if name in ("share", "busiest_partition") and isinstance(value, float)
            else value
            for name, value in row.items()
        }
        for row in rows
    ]
