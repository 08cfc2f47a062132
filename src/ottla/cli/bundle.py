"""`ottla debug bundle`: one file with what somebody needs who is to help, and without secrets."""

import json
import os
import platform
import zipfile
from collections.abc import Awaitable, Callable
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ottla.cli.explain.running import with_access
from ottla.cli.failure import Failure
from ottla.cli.output import json_option, show_done
from ottla.cli.profiles import cluster_options
from ottla.cli.times import parse_time_ms

if TYPE_CHECKING:
    from ottla.explain.access import Access

_LOG_BYTES_MAX: Final = 20_000_000
"""How much of the end of a log file is taken."""
_METRICS_BYTES_MAX: Final = 50_000_000
_TIMEOUT_S: Final = 15
_TOPICS_MAX: Final = 2_000


@click.group()
def debug() -> None:
    """Gather what somebody needs to help you."""


@debug.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@cluster_options
@json_option
@click.option(
    "--since", default="1h", show_default=True, metavar="TIME", help="How far back the journal is taken."
)
@click.option(
    "--log",
    "logs",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A log file of a node. Can be repeated.",
)
@click.option(
    "--config",
    "configs",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file of properties of a node or a client. Can be repeated.",
)
@click.option("--metrics", multiple=True, metavar="URL", help="The metrics of a node. Can be repeated.")
def bundle(
    file: Path,
    properties: dict[str, str],
    as_json: bool,
    since: str,
    logs: tuple[Path, ...],
    configs: tuple[Path, ...],
    metrics: tuple[str, ...],
) -> None:
    """Write what a cluster looks like to FILE, a ZIP archive that only you can read.

    It has the nodes, topics, configs, groups with their lags, the quorum, features, transactions, directories
    and the journal, and the files that you name. Values of secrets are hidden. It has the names of topics,
    groups, users and clients, and no records: look into it before you send it to somebody.
    """
    from ottla.model.secrets_hidden import without_secrets

    since_ms = parse_time_ms(since, "--since")
    parts: dict[str, str] = {}
    left_out: dict[str, str] = {}
    with_access(properties, lambda access: _gather(access, since_ms, parts, left_out))
    parts["versions.json"] = _json(_versions())
    for kind, paths in (("logs", logs), ("configs", configs)):
        for number, path in enumerate(paths, 1):
            parts[f"{kind}/{number}-{path.name}"] = without_secrets(_end_of(path))
    for number, url in enumerate(metrics, 1):
        try:
            parts[f"metrics/{number}.txt"] = without_secrets(_download(url))
        except (OSError, ValueError, HTTPException) as error:
            left_out[f"metrics/{number}.txt"] = without_secrets(f"{url}: {error}")
    parts["README.txt"] = _readme(parts, left_out)
    _write(file, parts)
    missing = f"; could not be had: {', '.join(left_out)}" if left_out else ""
    show_done(
        f"wrote {len(parts)} files to {file}{missing}",
        as_json,
        file=str(file),
        parts=sorted(parts),
        left_out=left_out,
    )


async def _gather(access: "Access", since_ms: int, parts: dict[str, str], left_out: dict[str, str]) -> None:
    from ottla.client.errors import ClientError
    from ottla.model.secrets_hidden import data_without_secrets, without_secrets

    questions: dict[str, Callable[[], Awaitable[Any]]] = {
        "cluster.json": access.admin.cluster.describe,
        "features.json": access.admin.cluster.features,
        "quorum.json": access.admin.quorum.describe,
        "topics.json": lambda: _topics(access),
        "configs.json": lambda: _configs(access),
        "groups.json": lambda: _groups(access),
        "transactions.json": access.admin.transactions.list,
        "directories.json": lambda: _succeeded(access.admin.log_dirs.describe()),
        "journal.json": lambda: _journal(access, since_ms),
    }
    for name, ask in questions.items():
        try:
            parts[name] = _json(data_without_secrets(_plain(await ask())))
        except ClientError as error:
            left_out[name] = without_secrets(str(error))


async def _succeeded(asked: Awaitable[Any]) -> Any:
    results = await asked
    return {**results.succeeded, **{key: str(error) for key, error in results.failed.items()}}


async def _topics(access: "Access") -> Any:
    names = [item.name for item in await access.admin.topics.list(internal=True)]
    return await _succeeded(access.admin.topics.describe_many(names[:_TOPICS_MAX]))


async def _configs(access: "Access") -> Any:
    """Return what is set: of brokers everything that is no default, of topics what is their own."""
    from ottla.client.admin.configs import ConfigResource
    from ottla.wire.config_kinds import ConfigSource, ResourceType

    brokers = [str(item.node_id) for item in (await access.admin.cluster.describe()).brokers]
    topics = [item.name for item in await access.admin.topics.list(internal=True)][:_TOPICS_MAX]
    resources = [ConfigResource(ResourceType.BROKER, name) for name in brokers]
    resources += [ConfigResource(ResourceType.TOPIC, name) for name in topics]
    found = await access.admin.configs.describe_many(resources, synonyms=False)
    return {
        str(resource): {
            name: "(hidden)" if config.is_sensitive else config.value
            for name, config in configs.items()
            if (
                not config.is_default
                if resource.type is ResourceType.BROKER
                else config.source is ConfigSource.TOPIC
            )
        }
        for resource, configs in found.succeeded.items()
    }


async def _groups(access: "Access") -> Any:
    from ottla.explain.lag.looking import look

    return (await look(access)).groups


async def _journal(access: "Access", since_ms: int) -> Any:
    from ottla.explain.evidence.journal import read_journal

    return [event._asdict() for event in (await read_journal(access, since_ms)).events]


def _plain(value: Any) -> Any:
    """Return objects as JSON has them."""
    from dataclasses import fields, is_dataclass

    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    if hasattr(value, "_asdict"):
        return {str(key): _plain(item) for key, item in value._asdict().items()}
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _versions() -> dict[str, str]:
    from ottla import __version__

    return {
        "ottla": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "machine": platform.machine(),
        "cores": str(os.cpu_count()),
    }


def _end_of(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(size - _LOG_BYTES_MAX, 0))
            text = stream.read(_LOG_BYTES_MAX).decode(errors="replace")
    except OSError as error:
        raise Failure(f"cannot read {path}: {error}") from error
    # The first line is cut off. Without its beginning, a secret in it could not be found.
    return text.partition("\n")[2] if size > _LOG_BYTES_MAX else text


def _download(url: str) -> str:
    from urllib.error import HTTPError
    from urllib.request import urlopen

    if not url.startswith(("http://", "https://")):
        raise ValueError("it must begin with http:// or https://")
    try:
        with urlopen(url, timeout=_TIMEOUT_S) as answer:  # noqa: S310
            return str(answer.read(_METRICS_BYTES_MAX).decode(errors="replace"))
    except HTTPError as error:
        # It holds the connection open, as an answer does.
        error.close()
        raise


def _json(data: Any) -> str:
    return json.dumps(data, indent=1, default=str)


def _readme(parts: dict[str, str], left_out: dict[str, str]) -> str:
    lines = [
        "Written by `ottla debug bundle`. Values of secrets are hidden; names of topics, groups, users and",
        "clients are not. There are no records in it.",
        "",
        *(f"{name}: {len(text)} characters" for name, text in sorted(parts.items())),
        "",
        *(f"could not be had: {name}: {why}" for name, why in sorted(left_out.items())),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _write(file: Path, parts: dict[str, str]) -> None:
    """Write the archive. It never exists in a form that others can read."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise Failure(f"{file} is there already; name another file") from None
    with os.fdopen(descriptor, "wb") as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in sorted(parts.items()):
            archive.writestr(f"ottla-bundle/{name}", text)
