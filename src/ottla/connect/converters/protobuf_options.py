"""How Protobuf stands for schemas of Connect, by the configuration names of Confluent's ProtobufConverter."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final, Self
from urllib.parse import quote_plus

NAMESPACE: Final = "io.confluent.connect.protobuf"
ENUM: Final = f"{NAMESPACE}.Enum"
UNION: Final = f"{NAMESPACE}.Union"
TAG: Final = f"{NAMESPACE}.Tag"
TYPE: Final = f"{NAMESPACE}.Type"
"""The parameter that names an integer type of Protobuf which is not the usual one."""
WRAPPER: Final = f"{NAMESPACE}.Wrapper"
DECIMAL_PRECISION: Final = "connect.decimal.precision"

_START: Final = re.compile(r"[A-Za-z]")
_INVALID: Final = re.compile(r"[^A-Za-z0-9_]")


@dataclass(frozen=True)
class ProtobufOptions:
    """What can be chosen. The names are those of the configuration, with underscores."""

    enhanced_protobuf_schema_support: bool = False
    scrub_invalid_names: bool = False
    int_for_enums: bool = False
    optional_for_nullables: bool = False
    optional_for_proto2: bool = True
    wrapper_for_nullables: bool = False
    wrapper_for_raw_primitives: bool = True
    generate_struct_for_nulls: bool = False
    generate_index_for_unions: bool = True
    flatten_unions: bool = False

    @classmethod
    def of(cls, config: Mapping[str, str]) -> Self:
        """Read them from the configuration of a converter."""
        given = {item.name: config.get(item.name.replace("_", ".")) for item in fields(cls)}
        return cls(**{name: text.strip().lower() == "true" for name, text in given.items() if text})

    def clean(self, name: str) -> str:
        """Return a name as Protobuf can have it, if invalid names are to be cleaned."""
        if not self.scrub_invalid_names:
            return name
        encoded = quote_plus(name, safe="*-._")
        return _INVALID.sub("_", encoded if _START.match(encoded) else f"x{encoded}")
