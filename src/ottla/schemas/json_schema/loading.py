"""From JSON to the nodes of a schema, by the draft that it names."""

from collections.abc import Mapping
from typing import Any

from ottla.schemas.errors import InvalidSchema
from ottla.schemas.json_schema.classic import ClassicLoader
from ottla.schemas.json_schema.model import Node
from ottla.schemas.json_schema.modern import ModernLoader
from ottla.schemas.json_schema.references import draft_of, is_modern


def load(schema: Any, resolved: Mapping[str, Any]) -> Node:
    """Load a schema and everything it refers to. Raises InvalidSchema."""
    loader = (ModernLoader if is_modern(draft_of(schema)) else ClassicLoader)(schema, resolved)
    try:
        root = loader.root()
        loader.load_all()
    except RecursionError:
        raise InvalidSchema("it is nested too deeply") from None
    return root
