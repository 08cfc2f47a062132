"""The kinds of changes between two JSON Schemas, which of them break readers, and how to say so."""

from typing import Final

from ottla.schemas.parsed import Difference

# A change of any kind that is not listed here breaks readers.
COMPATIBLE: Final = frozenset(
    (
        "SCHEMA_REMOVED",
        "TYPE_EXTENDED",
        "MAX_LENGTH_INCREASED",
        "MAX_LENGTH_REMOVED",
        "MIN_LENGTH_DECREASED",
        "MIN_LENGTH_REMOVED",
        "PATTERN_REMOVED",
        "MAXIMUM_INCREASED",
        "MAXIMUM_REMOVED",
        "MINIMUM_DECREASED",
        "MINIMUM_REMOVED",
        "EXCLUSIVE_MAXIMUM_INCREASED",
        "EXCLUSIVE_MAXIMUM_REMOVED",
        "EXCLUSIVE_MINIMUM_DECREASED",
        "EXCLUSIVE_MINIMUM_REMOVED",
        "MULTIPLE_OF_REDUCED",
        "MULTIPLE_OF_REMOVED",
        "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED",
        "REQUIRED_ATTRIBUTE_REMOVED",
        "DEPENDENCY_ARRAY_NARROWED",
        "DEPENDENCY_ARRAY_REMOVED",
        "DEPENDENCY_SCHEMA_REMOVED",
        "MAX_PROPERTIES_INCREASED",
        "MAX_PROPERTIES_REMOVED",
        "MIN_PROPERTIES_DECREASED",
        "MIN_PROPERTIES_REMOVED",
        "ADDITIONAL_PROPERTIES_ADDED",
        "ADDITIONAL_PROPERTIES_EXTENDED",
        "UNEVALUATED_PROPERTIES_ADDED",
        "UNEVALUATED_PROPERTIES_EXTENDED",
        "PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL",
        "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL",
        "PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "MAX_ITEMS_INCREASED",
        "MAX_ITEMS_REMOVED",
        "MIN_ITEMS_DECREASED",
        "MIN_ITEMS_REMOVED",
        "MAX_CONTAINS_INCREASED",
        "MAX_CONTAINS_REMOVED",
        "MIN_CONTAINS_DECREASED",
        "MIN_CONTAINS_REMOVED",
        "UNIQUE_ITEMS_REMOVED",
        "ADDITIONAL_ITEMS_ADDED",
        "ADDITIONAL_ITEMS_EXTENDED",
        "UNEVALUATED_ITEMS_ADDED",
        "UNEVALUATED_ITEMS_EXTENDED",
        "ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL",
        "ITEM_ADDED_TO_CLOSED_CONTENT_MODEL",
        "ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL",
        "ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "ENUM_ARRAY_EXTENDED",
        "COMBINED_TYPE_EXTENDED",
        "PRODUCT_TYPE_NARROWED",
        "SUM_TYPE_EXTENDED",
        "NOT_TYPE_NARROWED",
    )
)

LENIENT: Final = COMPATIBLE | frozenset(
    (
        "ADDITIONAL_PROPERTIES_NARROWED",
        "ADDITIONAL_PROPERTIES_REMOVED",
        "UNEVALUATED_PROPERTIES_NARROWED",
        "UNEVALUATED_PROPERTIES_REMOVED",
        "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL",
        "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
        "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    )
)

# By how a kind ends: the first that fits says it. The path comes first, and is put in later.
_SENTENCES: Final = {
    "ADDED_TO_OPEN_CONTENT_MODEL": "is new in the {reader} schema, but the {writer} schema allows any value "
    "there, because its content model is open",
    "ADDED_TO_UNOPEN_CONTENT_MODEL": "is required in the {reader} schema, has no default, and is missing in "
    "the {writer} schema",
    "REMOVED_FROM_CLOSED_CONTENT_MODEL": "is in the {writer} schema and missing in the {reader} schema, "
    "whose content model is closed",
    "NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": "is in only one of the {reader} and the {writer} schema, "
    "and the content model of the other does not cover it",
    "REQUIRED_ATTRIBUTE_ADDED": "is required in the {reader} schema, but not in the {writer} schema",
    "ADDED": "is in the {reader} schema and not in the {writer} schema",
    "REMOVED": "allows something in the {writer} schema that the {reader} schema does not allow",
    "INCREASED": "is larger in the {reader} schema than in the {writer} schema",
    "DECREASED": "is smaller in the {reader} schema than in the {writer} schema",
    "NARROWED": "allows less in the {reader} schema than in the {writer} schema",
    "EXPANDED": "is a multiple in the {reader} schema of what it is in the {writer} schema",
    "EXTENDED": "demands more in the {reader} schema than in the {writer} schema",
    "CHANGED": "is something else in the {reader} schema than in the {writer} schema",
}


def difference(kind: str, path: str) -> Difference:
    """Return a change with its sentence."""
    sentence = next(text for ending, text in _SENTENCES.items() if kind.endswith(ending))
    shown = path.replace("{", "{{").replace("}", "}}")
    return Difference(kind, path, f"'{shown}' {sentence}")
