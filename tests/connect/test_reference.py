"""The page about connectors is what the code says."""

from pathlib import Path

from ottla.connect.reference import render_reference

ROOT = Path(__file__).resolve().parents[2]


def test_the_reference_is_up_to_date() -> None:
    assert (ROOT / "docs/reference/connectors.md").read_text() == render_reference(), "run `make reference`"
