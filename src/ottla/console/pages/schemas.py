"""Schemas: subjects, versions and differences, and changes that are planned first."""

from typing import Any, Final

from starlette.responses import Response

from ottla.client.admin.access_rules import Operation
from ottla.client.errors import ClientError
from ottla.console.looks.satellites.schemas import (
    TYPES,
    NewSchema,
    Schemas,
    UnreadableSchema,
    read_references,
)
from ottla.console.serving.app import command_text
from ottla.console.serving.call import Call
from ottla.console.serving.failures import failure_of
from ottla.console.serving.rights import check_right, may
from ottla.model.shown import harmless
from ottla.satellite.errors import HttpError

_FILES: Final = {"AVRO": "schema.avsc", "JSON": "schema.json", "PROTOBUF": "schema.proto"}
_TOPIC_ENDS: Final = ("-value", "-key")


async def _registry(call: Call, right: Operation) -> Schemas:
    found: Schemas | None = call.console.satellites.schemas(call.cluster)
    if found is None:
        raise HttpError(404, "no registry is known: start the console with --registry URL")
    await check_right(call, right)
    return found


def _command(registry: Schemas, *words: str) -> str:
    return command_text(None, "schema", *words, "--registry", registry.shown_url)


async def schemas(call: Call) -> Response:
    """Show the list of subjects."""
    if call.console.satellites.schemas(call.cluster) is None:
        return call.page("schemas.html", place="schemas", page=None, text="", command=None, params={})
    registry = await _registry(call, Operation.DESCRIBE)
    page = await registry.find(call.text("q"), call.number("page", 1) or 1)
    return call.page(
        "schemas.html",
        place="schemas",
        page=page,
        text=call.text("q"),
        command=_command(registry, "list"),
        params=call.lasting,
    )


async def subject(call: Call) -> Response:
    """Show a subject."""
    return await _subject(call)


async def _subject(call: Call, **values: Any) -> Response:
    registry, name = await _registry(call, Operation.DESCRIBE), call.path["subject"]
    look = await registry.look(name, call.number("version"), call.number("from"))
    words = ["get", name, "--version", str(look.shown.version)]
    if look.changes:
        words = ["diff", name, "--from", str(look.compared), "--to", str(look.shown.version)]
    return call.page(
        "subject.html",
        place="schemas",
        look=look,
        topic=next((name.removesuffix(end) for end in _TOPIC_ENDS if name.endswith(end)), None),
        may_change=await may(call, Operation.ALTER),
        command=_command(registry, *words),
        **{"asked": None, "asked_command": None, **values},
    )


async def register_form(call: Call) -> Response:
    """Ask for a schema; with a subject that is there, its latest one is the beginning."""
    name, fields = call.text("subject"), {"type": "AVRO"}
    registry = await _registry(call, Operation.ALTER)
    if name:
        look = await registry.look(name, None, None)
        used = "\n".join(f"{one.name}={one.subject}:{one.version}" for one in look.shown.references)
        fields = {"subject": name, "type": look.shown.schema_type, "schema": look.text, "references": used}
    return _registering(call, fields)


def _registering(call: Call, fields: dict[str, str], **values: Any) -> Response:
    shown = {"reason": None, "plan": None, "command": None, **values}
    status = 400 if shown["reason"] else 200
    return call.page("register_schema.html", status, place="schemas", fields=fields, types=TYPES, **shown)


async def register_schema(call: Call) -> Response:
    """Check a schema, and register it when the answer was seen."""
    registry = await _registry(call, Operation.ALTER)
    fields = {name: call.field(name).strip() for name in ("subject", "type", "schema", "references")}
    try:
        new = _read(fields)
        if call.field("sure") == "yes":
            await registry.register(new)
            return call.see("schemas", new.subject)
        plan = await registry.plan(new)
    except UnreadableSchema as error:
        return _registering(call, fields, reason=str(error))
    except ClientError as error:
        return _registering(call, fields, reason=failure_of(error, call.visit.user).sentence)
    words = ["register", new.subject, _FILES[new.kind], "--type", new.kind]
    for used in new.references:
        words += ["--reference", f"{used.name}={used.subject}:{used.version}"]
    return _registering(call, fields, plan=plan, command=_command(registry, *words))


def _read(fields: dict[str, str]) -> NewSchema:
    if not fields["subject"]:
        raise UnreadableSchema("a subject is needed: orders-value is that of the values of the topic orders")
    if fields["type"] not in TYPES:
        raise UnreadableSchema(f"the type is one of {', '.join(TYPES)}")
    if not fields["schema"]:
        raise UnreadableSchema("a schema is needed")
    text = fields["schema"] = fields["schema"].replace("\r\n", "\n")
    if harmless(text) != text:
        # A form would give them back as they are shown, and another schema would be registered.
        raise UnreadableSchema("it has invisible characters: use the command `ottla schema register`")
    return NewSchema(fields["subject"], fields["type"], text, read_references(fields["references"]))


async def delete_schema(call: Call) -> Response:
    """Ask once more, and delete a subject or one of its versions."""
    registry, name = await _registry(call, Operation.ALTER), call.path["subject"]
    given = call.field("version")
    if given and (not given.isdecimal() or len(given) > len("2147483647")):
        raise HttpError(400, f"{given[:20]!r} is not a version")
    version = int(given) if given else None
    if call.field("sure") == "yes":
        if call.field("name") != name:
            raise HttpError(400, "type the name of the subject to say that you mean it: nothing was done")
        await registry.delete(name, version)
        return call.see("schemas")
    words = ["delete", name, *(["--version", given] if given else [])]
    return await _subject(call, asked=given or "all", asked_command=_command(registry, *words))
