"""The schema files that Apache Kafka's jars carry, read into the facts that our table keeps."""

import json
import re
import zipfile
from pathlib import Path
from typing import Any

from tests.golden.schemas import FieldFacts, SchemaFacts

_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)


def read_schemas(jars: Path) -> list[SchemaFacts]:
    """Read every schema of every Kafka jar in a directory, but those of Streams, which it keeps to itself."""
    schemas = []
    for jar in sorted(jars.glob("kafka*.jar")):
        if jar.name.startswith("kafka-streams"):
            continue
        with zipfile.ZipFile(jar) as archive:
            texts = [archive.read(name).decode() for name in archive.namelist() if name.endswith(".json")]
        schemas += [_read_schema(json.loads(_COMMENT.sub("", text))) for text in texts]
    return schemas


def _read_schema(schema: dict[str, Any]) -> SchemaFacts:
    shared = {struct["name"]: struct["fields"] for struct in schema.get("commonStructs", [])}
    return SchemaFacts(
        name=schema["name"],
        kind=schema["type"],
        api_key=schema.get("apiKey"),
        valid=schema["validVersions"],
        flexible=schema.get("flexibleVersions", "none"),
        listeners=tuple(sorted(schema.get("listeners", ()))),
        unstable=schema.get("latestVersionUnstable", False),
        fields=[_read_field(field, shared) for field in schema.get("fields", [])],
    )


def _read_field(field: dict[str, Any], shared: dict[str, Any]) -> FieldFacts:
    struct = field["type"].removeprefix("[]")
    # A default that is JSON's null, unlike the text "null", means the same to Kafka's generator as none.
    default = field.get("default")
    return FieldFacts(
        name=field["name"],
        type=field["type"],
        versions=field.get("versions") or field["taggedVersions"],
        nullable=field.get("nullableVersions", "none"),
        tag=field.get("tag"),
        tagged=field.get("taggedVersions", "none"),
        default=None if default is None else str(default).lower(),
        ignorable=field.get("ignorable", False),
        map_key=field.get("mapKey", False),
        plain=field.get("flexibleVersions") == "none",
        fields=[_read_field(inner, shared) for inner in field.get("fields") or shared.get(struct, [])],
    )
