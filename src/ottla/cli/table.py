"""`ottla table`: topics that are tables of Delta Lake, Iceberg or Parquet, by connectors of a worker."""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from ottla.cli.failure import Failure
from ottla.cli.output import confirm, json_option, say, show_done, show_rows
from ottla.cli.satellites import missing_extra

_PREFIX = "table-"
_CLASS = "ottla.connect.TableSinkConnector"
_CONFLUENT = "io.confluent.connect"
_CONVERTERS = {
    "json": "org.apache.kafka.connect.json.JsonConverter",
    "avro": f"{_CONFLUENT}.avro.AvroConverter",
    "protobuf": f"{_CONFLUENT}.protobuf.ProtobufConverter",
    "json-schema": f"{_CONFLUENT}.json.JsonSchemaConverter",
    "text": "org.apache.kafka.connect.storage.StringConverter",
}
_WITHOUT_REGISTRY = ("json", "text")
_connect_option = click.option(
    "--connect",
    "url",
    default="http://127.0.0.1:8083",
    show_default=True,
    envvar="OTTLA_CONNECT",
    metavar="URL",
    help="A worker of connectors: `ottla connect` starts one. It may have USER:PASSWORD@.",
)


@click.group()
def table() -> None:
    """Topics that are tables of Delta Lake, Iceberg or Parquet."""


@table.command()
@click.argument("topic")
@click.option(
    "--format", "kind", type=click.Choice(("delta", "iceberg", "parquet")), required=True, help="The format."
)
@click.option("--location", required=True, help="The directory or address (s3://...) of the table.")
@click.option(
    "--values",
    type=click.Choice(tuple(_CONVERTERS)),
    default="json",
    show_default=True,
    help="What values are. avro, protobuf and json-schema need --registry.",
)
@click.option("--registry", metavar="URL", envvar="OTTLA_REGISTRY", help="A schema registry.")
@click.option("--upsert", is_flag=True, help="Each key has one row; a record without a value removes it.")
@click.option("--key", "keys", metavar="COLUMN", multiple=True, help="A column of the key. Can be repeated.")
@click.option(
    "--partition-by",
    "parts",
    metavar="COLUMN",
    multiple=True,
    help="What divides the table: a column, or day(COLUMN) and the like. Can be repeated.",
)
@click.option(
    "--every-ms", type=click.IntRange(1), default=10_000, show_default=True, help="How often to commit."
)
@click.option(
    "--tasks", type=click.IntRange(1), default=1, show_default=True, help="How many tasks share it."
)
@click.option(
    "--set", "more", metavar="KEY=VALUE", multiple=True, help="Another key of the connector. Can be repeated."
)
@_connect_option
@json_option
def create(
    topic: str,
    kind: str,
    location: str,
    values: str,
    registry: str | None,
    upsert: bool,
    keys: tuple[str, ...],
    parts: tuple[str, ...],
    every_ms: int,
    tasks: int,
    more: tuple[str, ...],
    url: str,
    as_json: bool,
) -> None:
    """Make TOPIC a table, or change how it is made one.

    A worker of connectors copies it from then on, each record exactly once.
    """
    from ottla.cli.profiles import parse_assignments

    # The worker has another working directory.
    where = location if "://" in location else str(Path(location).absolute())
    config = {
        "connector.class": _CLASS,
        "topics": topic,
        "tasks.max": str(tasks),
        "table.format": kind,
        "table.location": where,
        "table.mode": "upsert" if upsert else "append",
        "table.key.columns": ",".join(keys),
        "table.partition.by": ",".join(parts),
        "table.commit.interval.ms": str(every_ms),
        **_converters(values, registry, reads_keys=upsert and not keys),
        **parse_assignments(more, "--set"),
    }
    given = {name: text for name, text in config.items() if text}
    _refuse_shared_place(url, topic, where)
    _ask(url, "PUT", f"/connectors/{_PREFIX}{topic}/config", given)
    show_done(f"topic {topic} becomes the {kind} table {where}", as_json, topic=topic, location=where)


def _refuse_shared_place(url: str, topic: str, where: str) -> None:
    """Refuse a place that another topic is copied to: rows of both would be mixed."""
    for found in _ask(url, "GET", "/connectors?expand=info&expand=status").values():
        config = found["info"]["config"]
        other = config.get("topics") or config.get("topics.regex", "")
        if (
            config.get("connector.class") == _CLASS
            and config.get("table.location") == where
            and other != topic
        ):
            raise Failure(
                f"topic {other} is copied to {where} already, and rows of both would be mixed: choose "
                f"another --location, or end the other with `ottla table delete {other}`"
            )


def _converters(values: str, registry: str | None, *, reads_keys: bool) -> dict[str, str]:
    """Return the keys that say how records are read."""
    if values not in _WITHOUT_REGISTRY and registry is None:
        raise Failure(f"values of {values} need a schema registry; name it with --registry")
    found = {}
    for side in ("value", "key") if reads_keys else ("value",):
        found[f"{side}.converter"] = _CONVERTERS[values]
        if values == "json":
            found[f"{side}.converter.schemas.enable"] = "false"
        elif values not in _WITHOUT_REGISTRY and registry is not None:
            found[f"{side}.converter.schema.registry.url"] = registry
    return found


@table.command("list")
@_connect_option
@json_option
def list_tables(url: str, as_json: bool) -> None:
    """List the topics that are tables."""
    rows = []
    answer = _ask(url, "GET", "/connectors?expand=info&expand=status")
    for found in answer.values():
        config = found["info"]["config"]
        if config.get("connector.class") != _CLASS:
            continue
        # A connector that was made just now has no status yet.
        status = found.get("status") or {"connector": {"state": "UNASSIGNED"}, "tasks": []}
        tasks = status["tasks"]
        failed = [task for task in tasks if task["state"] == "FAILED"]
        rows.append(
            {
                "topic": config.get("topics") or config.get("topics.regex", ""),
                "format": config["table.format"],
                "location": config["table.location"],
                "state": "FAILED" if failed else status["connector"]["state"],
                "tasks": len(tasks),
                "reason": _reason(failed[0]) if failed else None,
            }
        )
    rows.sort(key=lambda row: str(row["topic"]))
    shown = rows if as_json else [{key: row[key] for key in row if key != "reason"} for row in rows]
    show_rows(shown, as_json, "no topic is a table; `ottla table create` makes one")
    for row in rows:
        if row["reason"] is not None and not as_json:
            connector = f"{_PREFIX}{row['topic']}"
            say(f"{row['topic']}: {row['reason']}", err=True)
            say(
                f"  when that is mended: `ottla connector restart {connector} --url {_without_login(url)}`",
                err=True,
            )


def _reason(task: Any) -> str:
    """Return why a task failed: the first line of its trace."""
    return next(iter(str(task.get("trace") or "").strip().splitlines()), "no reason is known")


def _without_login(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


@table.command()
@click.argument("topic")
@click.option("--yes", is_flag=True, help="Do not ask.")
@_connect_option
@json_option
def delete(topic: str, yes: bool, url: str, as_json: bool) -> None:
    """Copy TOPIC to its table no more. The table itself stays."""
    confirm(f"stop copying {topic} to its table?", yes)
    _ask(url, "DELETE", f"/connectors/{_PREFIX}{topic}")
    show_done(f"topic {topic} is copied no more; its table stays", as_json, topic=topic)


def _ask(url: str, method: str, path: str, body: Any = None) -> Any:
    """Ask a worker, and return its answer."""
    try:
        import httpx
    except ImportError as error:
        raise missing_extra("tables", error) from error
    try:
        answer = httpx.request(method, f"{url.rstrip('/')}{path}", json=body, timeout=60, trust_env=False)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise Failure(
            f"no worker of connectors answers: {error}; run `ottla connect`, or name one with --connect"
        ) from error
    if answer.is_success:
        return answer.json() if answer.content else None
    try:
        reason = str(answer.json()["message"])
    except (ValueError, KeyError, TypeError):
        reason = answer.text
    raise Failure(f"the worker refused: {reason.strip() or answer.status_code}")
