"""The facts of Apache Kafka 4.3.1's 280 message schemas, as `schemas.tsv` keeps them.

A line that starts with `message` opens a message:

    message  name  kind  api key or record type  valid versions  flexible versions  listeners  "unstable"

and each of the lines below it is a field, with a dot for each level it is nested:

    ..name  type  versions  what else there is to say

What else: `null=` the versions that allow null, `tag=` number and versions, `default=`, `ignorable`, `key`
(of a map-like array), `plain` (never compact). Shared structs are written out wherever they are used.
"""

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

TABLE = Path(__file__).parent / "schemas.tsv"

RENAMED = {
    # Messages are tuples, whose `count` and `index` are methods.
    ("CreatePartitionsRequest", "Count"): "partition_count",
    ("FetchSnapshotResponse", "Index"): "partition_index",
    ("ProduceRequest", "Index"): "partition_index",
    ("ProduceResponse", "Index"): "partition_index",
    # `type` says too little where nothing else says which.
    ("ControlRecordTypeSchema", "Type"): "record_type",
    ("DefaultPrincipalData", "Type"): "principal_type",
    # Slips of the pen, and capitals that start no word.
    ("DeleteGroupsRequest", "GroupsNames"): "group_names",
    ("ElectLeadersResponse", "PartitionResult"): "partition_results",
    ("InitProducerIdRequest", "Enable2Pc"): "enable_2pc",
    ("KRaftVersionRecord", "KRaftVersion"): "kraft_version",
    ("RegisterBrokerRecord", "EndPoints"): "endpoints",
    ("RegisterControllerRecord", "EndPoints"): "endpoints",
    ("UpdateRaftVoterRequest", "KRaftVersionFeature"): "kraft_version_feature",
    ("VotersRecord", "KRaftVersionFeature"): "kraft_version_feature",
}
"""The fields whose name is not Kafka's in snake case, by message and Kafka's name."""


@dataclass
class FieldFacts:
    """One field. Versions are written as in Kafka; `type` is Kafka's, with `[]` before it for arrays."""

    name: str
    type: str
    versions: str
    nullable: str = "none"
    tag: int | None = None
    tagged: str = "none"
    default: str | None = None
    """As text; None where the schema gives none, so that the type's zero is meant."""
    ignorable: bool = False
    map_key: bool = False
    plain: bool = False
    fields: list["FieldFacts"] = field(default_factory=list)


@dataclass
class SchemaFacts:
    """One message."""

    name: str
    kind: str
    api_key: int | None
    valid: str
    flexible: str
    listeners: tuple[str, ...] = ()
    unstable: bool = False
    fields: list[FieldFacts] = field(default_factory=list)


def field_name(message: str, name: str) -> str:
    """Return what a field of Kafka's is called in our declaration."""
    return RENAMED.get((message, name)) or snake_case(name)


def snake_case(name: str) -> str:
    """Put an underscore before each word: `ReplicaId` becomes `replica_id`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


@cache
def load_schemas() -> dict[str, SchemaFacts]:
    """Read the table."""
    schemas: dict[str, SchemaFacts] = {}
    nesting: list[list[FieldFacts]] = []
    for line in TABLE.read_text().splitlines():
        columns = line.split("\t")
        if columns[0] == "message":
            schema = _read_message(columns)
            schemas[schema.name] = schema
            nesting = [schema.fields]
        else:
            depth = len(columns[0]) - len(columns[0].lstrip("."))
            facts = _read_field(columns)
            del nesting[depth:]
            nesting[-1].append(facts)
            nesting.append(facts.fields)
    return schemas


def format_schemas(schemas: list[SchemaFacts]) -> str:
    """Write the table."""
    lines: list[str] = []
    for schema in sorted(schemas, key=lambda schema: schema.name):
        key = "" if schema.api_key is None else str(schema.api_key)
        columns = ("message", schema.name, schema.kind, key, schema.valid, schema.flexible)
        lines.append("\t".join((*columns, ",".join(schema.listeners), "unstable" if schema.unstable else "")))
        _format_fields(schema.fields, 1, lines)
    return "".join(line.rstrip("\t") + "\n" for line in lines)


def _read_message(columns: list[str]) -> SchemaFacts:
    _, name, kind, key, valid, flexible, listeners, unstable = columns + [""] * (8 - len(columns))
    return SchemaFacts(
        name, kind, int(key) if key else None, valid, flexible,
        tuple(listeners.split(",")) if listeners else (), unstable == "unstable",
    )  # fmt: skip


def _read_field(columns: list[str]) -> FieldFacts:
    facts = FieldFacts(columns[0].lstrip("."), columns[1], columns[2])
    for remark in columns[3:]:
        word, _, value = remark.partition("=")
        match word:
            case "null":
                facts.nullable = value
            case "tag":
                number, _, facts.tagged = value.partition(" ")
                facts.tag = int(number)
            case "default":
                facts.default = value
            case "ignorable":
                facts.ignorable = True
            case "key":
                facts.map_key = True
            case "plain":
                facts.plain = True
            case _:
                raise AssertionError(f"{remark!r} means nothing")
    return facts


def _format_fields(fields: list[FieldFacts], depth: int, lines: list[str]) -> None:
    for facts in fields:
        remarks = (
            f"null={facts.nullable}" if facts.nullable != "none" else "",
            f"tag={facts.tag} {facts.tagged}" if facts.tag is not None else "",
            f"default={facts.default}" if facts.default is not None else "",
            "ignorable" if facts.ignorable else "",
            "key" if facts.map_key else "",
            "plain" if facts.plain else "",
        )
        columns = ("." * depth + facts.name, facts.type, facts.versions, *(r for r in remarks if r))
        lines.append("\t".join(columns))
        _format_fields(facts.fields, depth + 1, lines)
