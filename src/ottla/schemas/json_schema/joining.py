"""Nodes of JSON Schemas joined: what keywords beside each other mean together."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, Final, TypeGuard

from ottla.schemas.json_schema.model import Array, Combined, Node, Number, Object, Rest, Text

_MERGED: Final = (Array, Number, Object, Text)


def join(one: Node, other: Node) -> Node:
    """Return what two nodes mean that stand beside each other."""
    if _is_of_one_kind(one, other):
        return _merged(one, other)
    for several, added in ((one, other), (other, one)):
        if _is_generated(several, "anyOf") and any(type(kind) is type(added) for kind in several.branches):
            # Keywords beside a list of types belong to the type that they are about.
            branches = _with(several.branches, added)
            return Combined(_joined_key(several, added), "anyOf", branches, is_generated=True)
    branches = []
    for node in (*_flattened(one), *_flattened(other)):
        branches = _with(branches, node)
    return Combined(_joined_key(one, other), "allOf", branches, is_generated=True)


def joined_branches(branches: Iterable[Node]) -> list[Node]:
    """Return the branches of a combined schema, with those of generated ones in their place."""
    return [node for branch in branches for node in _flattened(branch)]


def _is_of_one_kind(one: Node, other: Node) -> bool:
    return isinstance(one, _MERGED) and type(one) is type(other)


def _is_generated(node: Node, criterion: str) -> TypeGuard[Combined]:
    return isinstance(node, Combined) and node.is_generated and node.criterion == criterion


def _flattened(node: Node) -> list[Node]:
    return node.branches if _is_generated(node, "allOf") else [node]


def _with(nodes: list[Node], added: Node) -> list[Node]:
    """Return nodes with one more, which becomes a part of the first of its kind."""
    for place, there in enumerate(nodes):
        if _is_of_one_kind(there, added):
            return [*nodes[:place], _merged(there, added), *nodes[place + 1 :]]
    return [*nodes, added]


def _merged(one: Node, other: Node) -> Node:
    """Return a node with the keywords of both. Of a keyword that both have, the second counts."""
    values: dict[str, Any] = {}
    for field in fields(one):
        before, after = getattr(one, field.name), getattr(other, field.name)
        match field.name, after:
            case "key", _:
                values["key"] = _joined_key(one, other)
            case "has_default", _:
                values["has_default"] = before or after
            case _, bool():
                values[field.name] = before or after
            case _, dict() | frozenset():
                values[field.name] = before | after
            case _, list():
                values[field.name] = before + after
            case _, Rest():
                values[field.name] = Rest(
                    before.is_permitted and after.is_permitted, after.schema or before.schema
                )
            case _:
                values[field.name] = before if after is None else after
    return type(one)(**values)


def _joined_key(one: Node, other: Node) -> str:
    return f"{one.key} {other.key}"
