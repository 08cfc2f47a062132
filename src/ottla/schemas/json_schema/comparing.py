"""What has changed between two JSON Schemas, by Confluent's rules.

An object is open if it takes any other property, closed if it takes none, and partially open if the others
must fit a schema. A pair of schemas that is being compared already counts as unchanged, so that recursive
schemas come to an end, and the result for a pair is kept, so that they come to an end soon.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import islice
from typing import Any, Final, NamedTuple

import re2

from ottla.schemas.errors import InvalidSchema
from ottla.schemas.json_schema.model import (
    Anything,
    Array,
    Combined,
    Constant,
    Enumeration,
    Negation,
    Node,
    Nothing,
    Number,
    Object,
    Reference,
    Text,
)

_BYTES: Final = "bytes"
_PAIRS_MAX: Final = 200_000
_CHANGES_MAX: Final = 1000
_PATTERN_BYTES_MAX: Final = 1_000_000


class Change(NamedTuple):
    """A kind of change, and where."""

    kind: str
    path: tuple[str, ...]

    def below(self, *parts: str) -> "Change":
        """Return the change as seen from further up."""
        return Change(self.kind, parts + self.path)


Changes = list[Change]


def compare(original: Node, update: Node, compatible: frozenset[str]) -> Changes:
    """Return the changes from `original` to `update` whose kinds are not in `compatible`: they break readers.

    Of very many only the first. Raises InvalidSchema if there is too much to compare.
    """
    return _Comparison(compatible).pair(original, update)


class _Comparison:
    def __init__(self, compatible: frozenset[str]) -> None:
        self._compatible = compatible
        self._results: dict[tuple[int, int], Changes] = {}

    def pair(self, original: Node | None, update: Node | None) -> Changes:
        if original is None or update is None:
            if original is update:
                return []
            return [Change("SCHEMA_ADDED" if original is None else "SCHEMA_REMOVED", ())]
        original, update = _target(original), _target(update)
        key = id(original), id(update)
        known = self._results.get(key)
        if known is None:
            if len(self._results) >= _PAIRS_MAX:
                raise _too_many_pairs()
            self._results[key] = []
            broken = (change for change in self._compare(original, update) if not self._is_allowed(change))
            # Each level may have those of the level below twice. That something is broken stays true.
            self._results[key] = known = list(islice(broken, _CHANGES_MAX))
        return known

    def _is_allowed(self, change: Change) -> bool:
        return change.kind in self._compatible

    def _is_compatible(self, changes: Changes) -> bool:
        return all(self._is_allowed(change) for change in changes)

    def _compare(self, original: Node, update: Node) -> Iterable[Change]:
        if isinstance(original, Combined) != isinstance(update, Combined):
            found = self._with_combined(original, update)
            if found is not None:
                return found
        if type(original) is not type(update):
            if isinstance(original, Nothing) or isinstance(update, Anything):
                return []
            if original.connect_type == update.connect_type == _BYTES:
                return []
            return [Change("TYPE_CHANGED", ())]
        return self._same_kind(original, update)

    def _with_combined(self, original: Node, update: Node) -> Changes | None:
        """Compare a combined schema with a plain one. None: by their kinds, like others."""
        if isinstance(update, Combined):
            pairs = [(original, branch) for branch in update.branches]
            is_special, added = update.criterion in ("anyOf", "oneOf"), "SUM_TYPE_EXTENDED"
        else:
            assert isinstance(original, Combined)
            pairs = [(branch, update) for branch in original.branches]
            is_special, added = original.criterion == "allOf", "PRODUCT_TYPE_NARROWED"
        if len(pairs) != 1 and not is_special:
            return None
        for one, other in pairs:
            changes = self.pair(one, other)
            if self._is_compatible(changes):
                return changes + ([Change(added, ())] if len(pairs) > 1 else [])
        return None

    def _same_kind(self, original: Node, update: Node) -> Iterator[Change]:
        comparisons: dict[type, Callable[[Any, Any], Iterator[Change]]] = {
            Text: _texts,
            Number: _numbers,
            Enumeration: _enumerations,
            Constant: _constants,
            Negation: self._negations,
            Combined: self._combined,
            Object: self._objects,
            Array: self._arrays,
        }
        compare = comparisons.get(type(original))
        if compare is not None:
            yield from compare(original, update)

    def _negations(self, original: Negation, update: Negation) -> Iterator[Change]:
        # What is refused may become less: there the sides are the other way round.
        is_narrower = self._is_compatible(self.pair(update.refused, original.refused))
        yield Change("NOT_TYPE_NARROWED" if is_narrower else "NOT_TYPE_EXTENDED", ("not",))

    def _combined(self, original: Combined, update: Combined) -> Iterator[Change]:
        change = _criteria(original, update)
        if change is not None:
            yield Change(change, ())
        if change == "COMBINED_TYPE_CHANGED":
            return
        before, after = _distinct(original.branches), _distinct(update.branches)
        if len(before) < len(after):
            yield Change("PRODUCT_TYPE_EXTENDED" if update.criterion == "allOf" else "SUM_TYPE_EXTENDED", ())
        elif len(before) > len(after):
            yield Change(
                "PRODUCT_TYPE_NARROWED" if original.criterion == "allOf" else "SUM_TYPE_NARROWED", ()
            )
        if len(before) * len(after) > _PAIRS_MAX:
            raise _too_many_pairs()
        edges: dict[int, dict[int, Changes]] = {}
        for place, one in enumerate(before):
            compared = {other: self.pair(one, branch) for other, branch in enumerate(after)}
            edges[place] = {
                other: changes for other, changes in compared.items() if self._is_compatible(changes)
            }
        matching = _match(edges)
        for place, other in matching.items():
            for found in edges[place][other]:
                yield found.below(original.criterion, str(place))
        if len(matching) < min(len(before), len(after)):
            yield Change("COMBINED_TYPE_SUBSCHEMAS_CHANGED", ())

    def _objects(self, original: Object, update: Object) -> Iterator[Change]:
        for name, schema in update.properties.items():
            if name in original.properties:
                was, now = name in original.required, name in update.required
                if was and not now:
                    yield Change("REQUIRED_ATTRIBUTE_REMOVED", ("required", name))
                elif now and not was:
                    kind = "WITH_DEFAULT_ADDED" if schema.has_default else "ADDED"
                    yield Change(f"REQUIRED_ATTRIBUTE_{kind}", ("required", name))
        for name in {**original.properties, **update.properties}:
            for change in self._property(name, original, update):
                yield change.below("properties", name)
        yield from self._dependencies(original, update)
        yield from self._rests("PROPERTIES", "Properties", original, update)
        yield from _limits("MAX_PROPERTIES", "maxProperties", original.max_properties, update.max_properties)
        yield from _limits("MIN_PROPERTIES", "minProperties", original.min_properties, update.min_properties)

    def _property(self, name: str, original: Object, update: Object) -> Iterator[Change]:
        before, after = original.properties.get(name), update.properties.get(name)
        if before is not None and after is not None:
            yield from self.pair(before, after)
        elif before is not None:
            yield from self._removed("PROPERTY", before, update, _covering(update, name))
        elif after is not None:
            yield from self._property_added(name, after, original, update)

    def _property_added(self, name: str, after: Node, original: Object, update: Object) -> Iterator[Change]:
        is_required = name in update.required
        if _is_open(original):
            if isinstance(after, Anything):
                yield Change("PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL", ())
            else:
                yield Change(f"{_added_kind(is_required, after)}_ADDED_TO_OPEN_CONTENT_MODEL", ())
            return
        covering = _covering(original, name)
        if covering is not None:
            changes = self.pair(covering, after)
            yield from changes
            word = "IS" if self._is_compatible(changes) else "NOT"
            yield Change(f"PROPERTY_ADDED_{word}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", ())
        yield Change(f"{_added_kind(is_required, after)}_ADDED_TO_UNOPEN_CONTENT_MODEL", ())

    def _removed(
        self, what: str, before: Node, update: Object | Array, covering: Node | None
    ) -> Iterator[Change]:
        if _is_open(update):
            yield Change(f"{what}_REMOVED_FROM_OPEN_CONTENT_MODEL", ())
        elif covering is not None:
            changes = self.pair(before, covering)
            yield from changes
            word = "IS" if self._is_compatible(changes) else "NOT"
            yield Change(f"{what}_REMOVED_{word}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", ())
        elif isinstance(before, Nothing):
            yield Change(f"{what}_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL", ())
        else:
            yield Change(f"{what}_REMOVED_FROM_CLOSED_CONTENT_MODEL", ())

    def _dependencies(self, original: Object, update: Object) -> Iterator[Change]:
        for name in {**original.property_dependencies, **update.property_dependencies}:
            before = original.property_dependencies.get(name)
            after = update.property_dependencies.get(name)
            if before != after:
                yield Change(f"DEPENDENCY_ARRAY_{_set_change(before, after)}", ("dependencies", name))
        for name in {**original.schema_dependencies, **update.schema_dependencies}:
            one, other = original.schema_dependencies.get(name), update.schema_dependencies.get(name)
            if one is None or other is None:
                kind = "ADDED" if one is None else "REMOVED"
                yield Change(f"DEPENDENCY_SCHEMA_{kind}", ("dependencies", name))
            else:
                for change in self.pair(one, other):
                    yield change.below("dependencies", name)

    def _rests(
        self, what: str, keyword: str, original: Object | Array, update: Object | Array
    ) -> Iterator[Change]:
        before, after = original.additional, update.additional
        path = f"additional{keyword}"
        if before.is_permitted != after.is_permitted:
            yield Change(f"ADDITIONAL_{what}_{'ADDED' if after.is_permitted else 'REMOVED'}", (path,))
        elif before.schema is None and after.schema is not None:
            yield Change(f"ADDITIONAL_{what}_NARROWED", (path,))
        elif before.schema is not None and after.schema is None:
            yield Change(f"ADDITIONAL_{what}_EXTENDED", (path,))
        else:
            for change in self.pair(before.schema, after.schema):
                yield change.below(path)
        yield from self._unevaluated(what, f"unevaluated{keyword}", original.unevaluated, update.unevaluated)

    def _unevaluated(self, what: str, path: str, before: Node | None, after: Node | None) -> Iterator[Change]:
        if before is None and after is None:
            return
        # Without the keyword everything is allowed.
        one, other = before or Anything(""), after or Anything("")
        if isinstance(one, Nothing) != isinstance(other, Nothing):
            yield Change(f"UNEVALUATED_{what}_{'ADDED' if isinstance(one, Nothing) else 'REMOVED'}", (path,))
        elif before is None or (isinstance(one, Anything) and not isinstance(other, Anything)):
            yield Change(f"UNEVALUATED_{what}_NARROWED", (path,))
        elif after is None or (isinstance(other, Anything) and not isinstance(one, Anything)):
            yield Change(f"UNEVALUATED_{what}_EXTENDED", (path,))
        else:
            for change in self.pair(before, after):
                yield change.below(path)

    def _arrays(self, original: Array, update: Array) -> Iterator[Change]:
        for change in self.pair(original.all_items, update.all_items):
            yield change.below("items")
        for place in range(max(len(original.items), len(update.items))):
            for change in self._item(place, original, update):
                yield change.below("items", str(place))
        yield from self._rests("ITEMS", "Items", original, update)
        yield from _limits("MAX_ITEMS", "maxItems", original.max_items, update.max_items)
        yield from _limits("MIN_ITEMS", "minItems", original.min_items, update.min_items)
        if original.is_unique != update.is_unique:
            yield Change(f"UNIQUE_ITEMS_{'REMOVED' if original.is_unique else 'ADDED'}", ("uniqueItems",))
        yield from _limits("MAX_CONTAINS", "maxContains", original.max_contains, update.max_contains)
        yield from _limits("MIN_CONTAINS", "minContains", original.min_contains, update.min_contains)

    def _item(self, place: int, original: Array, update: Array) -> Iterator[Change]:
        if place >= len(update.items):
            yield from self._removed("ITEM", original.items[place], update, _covering_items(update))
            return
        after = update.items[place]
        if place < len(original.items):
            yield from self.pair(original.items[place], after)
        elif _is_open(original):
            kind = "ITEM_WITH_EMPTY_SCHEMA" if isinstance(after, Anything) else "ITEM"
            yield Change(f"{kind}_ADDED_TO_OPEN_CONTENT_MODEL", ())
        elif (covering := _covering_items(original)) is not None:
            changes = self.pair(covering, after)
            yield from changes
            word = "IS" if self._is_compatible(changes) else "NOT"
            yield Change(f"ITEM_ADDED_{word}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", ())
        else:
            yield Change("ITEM_ADDED_TO_CLOSED_CONTENT_MODEL", ())


def _too_many_pairs() -> InvalidSchema:
    return InvalidSchema(
        f"there are more than {_PAIRS_MAX} pairs of schemas to compare: use fewer branches in anyOf, oneOf "
        "and allOf"
    )


def _target(node: Node) -> Node:
    return node.target() if isinstance(node, Reference) else node


def _texts(original: Text, update: Text) -> Iterator[Change]:
    yield from _limits("MAX_LENGTH", "maxLength", original.max_length, update.max_length)
    yield from _limits("MIN_LENGTH", "minLength", original.min_length, update.min_length)
    if original.pattern != update.pattern:
        kind = "ADDED" if original.pattern is None else "REMOVED" if update.pattern is None else "CHANGED"
        yield Change(f"PATTERN_{kind}", ("pattern",))


def _numbers(original: Number, update: Number) -> Iterator[Change]:
    yield from _limits("MAXIMUM", "maximum", original.maximum, update.maximum)
    yield from _limits("MINIMUM", "minimum", original.minimum, update.minimum)
    yield from _limits(
        "EXCLUSIVE_MAXIMUM", "exclusiveMaximum", original.exclusive_maximum, update.exclusive_maximum
    )
    yield from _limits(
        "EXCLUSIVE_MINIMUM", "exclusiveMinimum", original.exclusive_minimum, update.exclusive_minimum
    )
    if original.multiple_of != update.multiple_of:
        kind = _multiple_change(original.multiple_of, update.multiple_of)
        yield Change(f"MULTIPLE_OF_{kind}", ("multipleOf",))
    if original.is_integer != update.is_integer:
        yield Change("TYPE_EXTENDED" if original.is_integer else "TYPE_NARROWED", ())


def _multiple_change(before: float | None, after: float | None) -> str:
    if before is None:
        return "ADDED"
    if after is None:
        return "REMOVED"
    one, other = Decimal(str(before)), Decimal(str(after))
    if one and not other % one:
        return "EXPANDED"
    return "REDUCED" if other and not one % other else "CHANGED"


def _enumerations(original: Enumeration, update: Enumeration) -> Iterator[Change]:
    if original.values != update.values:
        yield Change(f"ENUM_ARRAY_{_set_change(original.values, update.values)}", ("enum",))


def _constants(original: Constant, update: Constant) -> Iterator[Change]:
    if original.value != update.value:
        yield Change("ENUM_ARRAY_CHANGED", ("const",))


def _set_change(before: frozenset[str] | None, after: frozenset[str] | None) -> str:
    if before is None:
        return "ADDED"
    if after is None:
        return "REMOVED"
    return "EXTENDED" if before < after else "NARROWED" if after < before else "CHANGED"


def _limits(kind: str, keyword: str, before: float | None, after: float | None) -> Iterator[Change]:
    if before == after:
        return
    if before is None or after is None:
        yield Change(f"{kind}_{'ADDED' if before is None else 'REMOVED'}", (keyword,))
    else:
        yield Change(f"{kind}_{'INCREASED' if before < after else 'DECREASED'}", (keyword,))


def _added_kind(is_required: bool, schema: Node) -> str:
    if not is_required:
        return "OPTIONAL_PROPERTY"
    return "REQUIRED_PROPERTY_WITH_DEFAULT" if schema.has_default else "REQUIRED_PROPERTY"


def _is_open(node: Object | Array) -> bool:
    if not node.additional.is_permitted or node.additional.schema is not None:
        return False
    if isinstance(node, Object) and node.patterns:
        return False
    return node.unevaluated is None or isinstance(node.unevaluated, Anything)


def _covering(node: Object, name: str) -> Node | None:
    """Return the schema that a property must fit which is not named."""
    for pattern, schema in node.patterns:
        if _finds(pattern, name):
            return schema
    return _covering_items(node)


def _covering_items(node: Object | Array) -> Node | None:
    if node.additional.schema is not None:
        return node.additional.schema
    is_covering = node.additional.is_permitted and not isinstance(node.unevaluated, Nothing | Anything)
    return node.unevaluated if is_covering else None


def _finds(pattern: str, name: str) -> bool:
    compiled = _compiled(pattern)
    return compiled is not None and compiled.search(name) is not None


@lru_cache(maxsize=1000)
def _compiled(pattern: str) -> Any:
    """Return a pattern that takes time in proportion to the text. None: RE2 has no such pattern.

    Deviation: Confluent's registry runs patterns that take for ever. Those that RE2 does not know, with
    references back and looks around, match nothing here.
    """
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _PATTERN_BYTES_MAX
    try:
        return re2.compile(pattern, options)
    except re2.error:
        return None


def _criteria(original: Combined, update: Combined) -> str | None:
    if original.criterion == update.criterion:
        return None
    was_single, is_single = len(original.branches) == 1, len(update.branches) == 1
    is_wider = (
        update.criterion == "anyOf"
        or (was_single and is_single)
        or (was_single and update.criterion == "oneOf")
        or (is_single and original.criterion == "allOf")
    )
    return "COMBINED_TYPE_EXTENDED" if is_wider else "COMBINED_TYPE_CHANGED"


def _distinct(branches: Sequence[Node]) -> list[Node]:
    return list({branch.key: branch for branch in branches}.values())


def _match(edges: dict[int, dict[int, Changes]]) -> dict[int, int]:
    """Pair as many of both sides as possible (Kuhn's algorithm)."""
    owners: dict[int, int] = {}

    def place(one: int, tried: set[int]) -> bool:
        for other in edges[one]:
            if other not in tried:
                tried.add(other)
                if other not in owners or place(owners[other], tried):
                    owners[other] = one
                    return True
        return False

    for one in edges:
        place(one, set())
    return {one: other for other, one in owners.items()}
