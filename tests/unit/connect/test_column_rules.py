"""Columns that are left out, cut or masked. The hashes are those of Debezium 3.3.1."""

import pytest

from ottla.connect.connectors.sql.column_rules import ColumnRules, column_errors

_HASH = "column.mask.hash.SHA-256.with.salt.CzQMA0cB5K"
_HASH_2 = "column.mask.hash.v2.SHA-256.with.salt.CzQMA0cB5K"


def test_columns_are_shown_by_patterns_whatever_their_case() -> None:
    without = ColumnRules({"column.exclude.list": r"public\.users\.(SSN|pin.*), shop\..*\.note"})
    shown = [
        name
        for name in ("public.users.ssn", "public.users.pin_2", "public.users.id", "shop.x.note", "a.b.note")
        if without.shows(*name.rsplit(".", 1))
    ]
    assert shown == ["public.users.id", "a.b.note"]
    only = ColumnRules({"column.include.list": r"public\.users\.id"})
    assert only.shows("public.users", "ID")
    assert not only.shows("public.users", "idx")
    assert ColumnRules({}).shows("public.users", "id")


@pytest.mark.parametrize(
    ("option", "length_max", "text", "found"),
    [
        ("column.truncate.to.3.chars", None, "abcdef", "abc"),
        ("column.truncate.to.3.chars", None, None, None),
        ("column.mask.with.3.chars", None, "abcdef", "***"),
        ("column.mask.with.3.chars", None, None, "***"),
        ("column.mask.with.0.chars", None, "abcdef", ""),
        (_HASH, None, "bob", "755283f6d60f334f92044b81549ca5eb1eff1af1fef3d106b93611c8057d6849"),
        (_HASH, 20, "zo\u00eb", "4b78813e2b61311f436e"),
        (_HASH, 20, "", "7b061bc77caec9afdc6b"),
        (_HASH, None, None, None),
        (_HASH_2, None, "bob", "e07e9fd6ce4b8e93b31ce479d53e53cf1dd2ad03aa66f1e2953ff3b273132cdf"),
        (_HASH_2, 20, "zo\u00eb", "0e402da0d764a060ac07"),
        (_HASH.replace("SHA-256", "MD5"), None, "bob", "7c745ac232ef6edc3b3434a06cccdcb0"),
    ],
)
def test_a_value_is_cut_or_masked(
    option: str, length_max: int | None, text: str | None, found: str | None
) -> None:
    rules = ColumnRules({option: r"public\.users\..*"})
    change = rules.change("public.users", "name", length_max)
    assert change is not None
    assert change(text) == found
    assert rules.change("public.others", "name", None) is None


@pytest.mark.parametrize(
    ("config", "key", "text"),
    [
        (
            {"column.include.list": "a", "column.exclude.list": "b"},
            "column.include.list",
            "exclude each other",
        ),
        ({"column.exclude.list": "("}, "column.exclude.list", "Not a regular expression"),
        ({"column.mask.with.x.chars": "a"}, "column.mask.with.x.chars", "use column.truncate.to.N.chars"),
        ({"column.mask.with.9999999.chars": "a"}, "column.mask.with.9999999.chars", "1000000 characters"),
        (
            {"column.mask.hash.ROT13.with.salt.x": "a"},
            "column.mask.hash.ROT13.with.salt.x",
            "ROT13 is not known",
        ),
        ({"column.mask.with.3.chars": "["}, "column.mask.with.3.chars", "Not a regular expression"),
    ],
)
def test_an_option_that_would_hide_nothing_is_an_error(config: dict[str, str], key: str, text: str) -> None:
    errors = dict(column_errors(config))
    assert text in errors[key]


def test_right_options_have_no_errors() -> None:
    config = {"column.exclude.list": "a", "column.truncate.to.3.chars": "b", _HASH: "c", "name": "x"}
    assert list(column_errors(config)) == []
