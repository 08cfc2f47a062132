"""Our declarations say what Apache Kafka's schemas say: no more, no less, and nothing else."""

from typing import Any

import pytest
from tests.golden.schemas import FieldFacts, SchemaFacts, field_name, load_schemas
from tests.support.declarations import all_messages

from ottla.model.uuid import ZERO_UUID
from ottla.wire.apis import ApiKey, api_of
from ottla.wire.declare import fields_of, spec_of
from ottla.wire.layout import Field, empty, layout_of
from ottla.wire.versions import parse_versions

SCHEMAS = load_schemas()


def test_the_table_has_all_schemas() -> None:
    assert len(SCHEMAS) == 280


def test_every_schema_is_declared_and_nothing_else_is() -> None:
    assert all_messages().keys() == SCHEMAS.keys()


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_declaration_agrees_with_the_schema(name: str) -> None:
    facts, cls = SCHEMAS[name], all_messages()[name]
    spec = spec_of(cls)
    assert spec.versions == parse_versions(facts.valid)
    versions = set(spec.versions.all)
    assert set(spec.flexible.all) & versions == _set(facts.flexible) & versions
    assert spec.api_key == facts.api_key
    assert tuple(sorted(spec.listeners)) == facts.listeners
    assert spec.latest_version_unstable == facts.unstable
    _compare_fields(name, cls, facts.fields, versions)


@pytest.mark.parametrize("key", ApiKey)
def test_api_table_agrees_with_the_schemas(key: ApiKey) -> None:
    api = api_of(key)
    request = _schema_of("request", key)
    response = _schema_of("response", key)
    assert api.request is all_messages()[request.name]
    assert api.response is all_messages()[response.name]
    assert request.name == f"{''.join(word.capitalize() for word in key.name.split('_'))}Request"
    # What a version looks like is asked of the request's declaration alone, also for the response.
    assert api.versions == spec_of(api.response).versions
    assert api.flexible == spec_of(api.response).flexible


def test_api_table_has_every_api() -> None:
    assert set(ApiKey) == {facts.api_key for facts in SCHEMAS.values() if facts.kind == "request"}


def _schema_of(kind: str, key: ApiKey) -> SchemaFacts:
    (facts,) = (facts for facts in SCHEMAS.values() if facts.kind == kind and facts.api_key == key)
    return facts


def _compare_fields(place: str, cls: type[Any], facts: list[FieldFacts], versions: set[int]) -> None:
    layout, message = layout_of(cls), place.partition(".")[0]
    assert [field.name for field in layout] == [field_name(message, fact.name) for fact in facts], place
    for field, fact in zip(layout, facts, strict=True):
        _compare_field(f"{place}.{field.name}", cls, field, fact, versions)


def _compare_field(place: str, cls: type[Any], field: Field, fact: FieldFacts, versions: set[int]) -> None:
    present = _set(fact.versions) & versions
    assert set(field.versions.all) & versions == present, place
    assert set(field.nullable.all) & present == _set(fact.nullable) & present, place
    assert set(field.tagged.all) & present == _set(fact.tagged) & present, place
    assert (field.tag, field.ignorable, field.never_compact) == (fact.tag, fact.ignorable, fact.plain), place
    assert fields_of(cls)[field.name].map_key == fact.map_key, place
    assert field.is_array == fact.type.startswith("[]"), place
    kind = fact.type.removeprefix("[]")
    if field.struct is not None:
        assert fact.fields or kind[0].isupper(), place
        _compare_fields(place, field.struct, fact.fields, present)
    else:
        assert field.kind == ("error_code" if _is_error_code(fact) else kind), place
    assert field.default == _default(field, fact), place


def _default(field: Field, fact: FieldFacts) -> Any:
    if fact.default == "null":
        return None
    if field.is_array:
        return ()
    if field.struct is not None:
        return empty(field.struct)
    text = fact.default
    match fact.type:
        case "bool":
            return text == "true"
        case "string":
            return text or ""
        case "bytes":
            return b""
        case "records":
            return None
        case "uuid":
            return ZERO_UUID
        case "float64":
            return float(text or 0)
        case _:
            return int(text or "0", 0)


def _is_error_code(fact: FieldFacts) -> bool:
    return fact.name.endswith("ErrorCode") and fact.type == "int16"


def _set(versions: str) -> set[int]:
    first, last = parse_versions(versions)
    return set(range(first, min(last, 100) + 1))
