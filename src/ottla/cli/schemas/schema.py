"""`ottla schema`: the schemas of a registry."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from ottla.cli.failure import Failure
from ottla.cli.output import confirm, json_option, say, show_done, show_rows
from ottla.cli.schemas.encoding import TYPES
from ottla.cli.schemas.options import registry_options, with_registry

if TYPE_CHECKING:
    from ottla.client.registry.client import Registered, RegistryClient
    from ottla.schemas.parsed import Reference

F = TypeVar("F", bound=Callable[..., Any])
_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


def _schema_in_a_file(command: F) -> F:
    """Add the arguments and options of a command that reads a schema from a file."""
    for option in (
        click.option(
            "--reference",
            "references",
            metavar="NAME=SUBJECT:VERSION",
            multiple=True,
            help="A schema that this one uses. Can be repeated.",
        ),
        click.option(
            "--type",
            "schema_type",
            type=click.Choice(("AVRO", "JSON", "PROTOBUF")),
            help="Default: by the name of the file (.avsc, .json, .proto).",
        ),
        json_option,
        registry_options,
        click.argument("file", type=_FILE),
        click.argument("subject"),
    ):
        command = option(command)
    return command


@click.group()
def schema() -> None:
    """List, compare and change the schemas of a registry."""


@schema.command("list")
@click.argument("prefix", default="")
@registry_options
@json_option
@click.option("--deleted", is_flag=True, help="Also show subjects and versions that are deleted.")
def list_schemas(url: str, user: str | None, as_json: bool, prefix: str, deleted: bool) -> None:
    """List subjects that begin with PREFIX, with their latest versions."""

    def work(registry: "RegistryClient") -> list[dict[str, Any]]:
        options: dict[str, Any] = {"deleted": deleted}
        if prefix:
            options["subjectPrefix"] = prefix
        by_subject: dict[str, list[Any]] = {}
        for item in registry.ask("GET", "/schemas", **options):
            by_subject.setdefault(item["subject"], []).append(item)
        return [
            {
                "subject": subject,
                "versions": [item["version"] for item in items],
                "id": items[-1]["id"],
                "type": items[-1].get("schemaType") or "AVRO",
            }
            for subject, items in by_subject.items()
        ]

    rows = with_registry(url, user, work)
    show_rows(rows, as_json, "there are no schemas; use `ottla schema register SUBJECT FILE` to register one")


@schema.command()
@click.argument("subject", required=False)
@registry_options
@json_option
@click.option("--version", type=click.IntRange(1), help="The version. Default: the latest.")
@click.option("--id", "schema_id", type=click.IntRange(0), help="Look for an id instead of a subject.")
def get(
    url: str, user: str | None, as_json: bool, subject: str | None, version: int | None, schema_id: int | None
) -> None:
    """Print a schema of SUBJECT, or the one with an id."""
    if (subject is None) == (schema_id is None):
        raise click.UsageError("give either a subject or --id")

    def work(registry: "RegistryClient") -> "Registered":
        if schema_id is not None:
            return registry.by_id(schema_id)
        assert subject is not None, "one of the two is given"
        return registry.latest(subject) if version is None else registry.version(subject, version)

    found = with_registry(url, user, work)
    facts = {
        "subject": found.subject,
        "version": found.version,
        "id": found.id,
        "type": found.schema_type,
        "schema": found.text,
        "references": [reference._asdict() for reference in found.references],
    }
    from ottla.client.registry.showing import laid_out

    show_done(laid_out(found), as_json, **facts)


@schema.command()
@_schema_in_a_file
@click.option("--normalize", is_flag=True, help="Ignore differences that are only a matter of style.")
def register(
    url: str,
    user: str | None,
    as_json: bool,
    subject: str,
    file: Path,
    schema_type: str | None,
    references: tuple[str, ...],
    normalize: bool,
) -> None:
    """Register the schema in FILE under SUBJECT."""
    text, kind = _read(file, schema_type)
    used = _references(references)
    found = with_registry(
        url, user, lambda registry: registry.register(subject, text, kind, used, normalize=normalize)
    )
    show_done(
        f"{subject} has the schema as version {found.version}, id {found.id}",
        as_json,
        subject=subject,
        version=found.version,
        id=found.id,
    )


@schema.command()
@_schema_in_a_file
def check(
    url: str,
    user: str | None,
    as_json: bool,
    subject: str,
    file: Path,
    schema_type: str | None,
    references: tuple[str, ...],
) -> None:
    """Check whether the schema in FILE could be registered under SUBJECT. Exits 1 if it could not."""
    text, kind = _read(file, schema_type)
    used = _references(references)
    messages = with_registry(
        url, user, lambda registry: registry.incompatibilities(subject, text, kind, used)
    )
    from ottla.client.registry.showing import reason

    why = [sentence for message in messages if (sentence := reason(message))]
    if messages:
        if as_json:
            show_done("", as_json, compatible=False, reasons=why)
            raise click.exceptions.Exit(1)
        raise Failure(f"the schema does not fit {subject}: " + "; ".join(why or messages))
    show_done(f"the schema fits {subject}", as_json, compatible=True, reasons=[])


@schema.command()
@click.argument("subject")
@registry_options
@click.option("--from", "older", type=click.IntRange(1), help="Default: the version before the other.")
@click.option("--to", "newer", type=click.IntRange(1), help="Default: the latest.")
def diff(url: str, user: str | None, subject: str, older: int | None, newer: int | None) -> None:
    """Show what has changed between two versions of SUBJECT."""

    def work(registry: "RegistryClient") -> list[str]:
        from urllib.parse import quote

        from ottla.client.registry.showing import difference

        versions = registry.ask("GET", f"/subjects/{quote(subject, safe='')}/versions")
        to = newer or versions[-1]
        before = [number for number in versions if number < to]
        start = older or (before[-1] if before else to)
        one, other = registry.version(subject, start), registry.version(subject, to)
        return difference(one, other, f"{subject} version {start}", f"{subject} version {to}")

    for line in with_registry(url, user, work):
        say(line)


@schema.command()
@click.argument("subject")
@registry_options
@json_option
@click.option("--version", type=click.IntRange(1), help="Delete only this version.")
@click.option("--permanent", is_flag=True, help="Delete what was deleted before, for good.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(
    url: str, user: str | None, as_json: bool, subject: str, version: int | None, permanent: bool, yes: bool
) -> None:
    """Delete SUBJECT, or one of its versions. Ids that records carry can still be looked up."""
    from urllib.parse import quote

    what = subject if version is None else f"version {version} of {subject}"
    if permanent:
        confirm(f"Delete {what} for good? Records with its ids can then no longer be read.", yes)
    path = f"/subjects/{quote(subject, safe='')}" + ("" if version is None else f"/versions/{version}")
    found = with_registry(url, user, lambda registry: registry.ask("DELETE", path, permanent=permanent))
    versions = found if isinstance(found, list) else [found]
    show_done(f"deleted {what}", as_json, subject=subject, versions=versions, permanent=permanent)


def _read(file: Path, schema_type: str | None) -> tuple[str, str]:
    kind = schema_type or TYPES.get(file.suffix)
    if kind is None:
        raise click.UsageError(f"the type of {file.name} is not known by its name: add --type")
    try:
        return file.read_text(), kind
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{file} cannot be read: {error}") from error


def _references(given: tuple[str, ...]) -> "list[Reference]":
    from ottla.schemas.parsed import Reference

    references = []
    for text in given:
        name, equals, rest = text.partition("=")
        subject, colon, version = rest.rpartition(":")
        if not equals or not colon or not version.lstrip("-").isdigit():
            raise click.BadParameter(f"{text!r} is not NAME=SUBJECT:VERSION", param_hint="--reference")
        references.append(Reference(name, subject, int(version)))
    return references
