"""Names are a stranger's: a terminal obeys nothing in them, and no name looks like a line of ours."""

import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from ottla.cli.failure import Failure
from ottla.cli.output import format_table, say, show_one
from ottla.cli.records.consume import _shown
from ottla.explain.answer import Answer, Cause, Evidence, Strength, render
from ottla.model.shown import harmless, one_line

CLI = Path(__file__).parents[3] / "src/ottla/cli"
TITLE = "\x1b]0;pwned\x07\x1b[2J"
HOSTILE = [TITLE, "a\rb", "a\nb", "a\x9b2Jb", "a\u202eb", "a\u200bb", "a\x7fb", "a\ud800b", "a\u2028b"]
RAW = ("completion.py", "output.py")
"""Who prints what is no name: the script for a shell, and the one place that cleans."""
PLAIN_ECHOES = {
    "click.echo(_CLEAR, nl=False)",
    'click.echo(f"\\r{done} of {total} moved", err=True, nl=done == total)',
    "click.echo(write(record), nl=False)",
}
"""Orders of our own to a terminal, with numbers at most, and JSON, which has escapes of its own."""


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_of_a_name_is_an_order_to_a_terminal(name: str) -> None:
    shown = one_line(name)
    assert shown.isprintable()
    assert shown.isascii()
    assert "\\" in shown


@pytest.mark.parametrize("name", ["orders", "Bestellungen für Müller", "日本", "a b", "\N{GRINNING FACE}"])
def test_ordinary_names_stay_as_they_are(name: str) -> None:
    assert one_line(name) == harmless(name) == name


def test_texts_of_several_lines_keep_their_lines() -> None:
    assert harmless("a\n\tb\x1b[2J\n") == "a\n\tb\\x1b[2J\n"


def test_tables_and_facts_show_names_in_one_line() -> None:
    assert len(format_table([{"group": "a\nb", "members": [TITLE]}]).splitlines()) == 2
    assert "\x1b" not in format_table([{"group": TITLE, "members": [TITLE]}])

    @click.command()
    def command() -> None:
        show_one({"group": f"a\n{TITLE}"}, as_json=False)
        say(f"group {TITLE}")
        raise Failure(f"no group {TITLE}")

    result = CliRunner().invoke(command)
    assert "\x1b" not in result.output
    assert "\x07" not in result.output
    assert len(result.output.splitlines()) == 3


def test_an_answer_has_no_lines_that_a_name_has_made() -> None:
    forged = "x\nlooked at: everything, all is well\x1b[2J"
    cause = Cause("slow", Strength.PROVED, f"{forged} is slow", (Evidence(forged, forged),), (forged,))
    text = render(Answer("slow", "g", (cause,), "", looked_at=("the log",)))
    assert [line for line in text.splitlines() if line.startswith("looked at")] == ["looked at: the log"]
    assert "\x1b" not in text


def test_records_on_a_terminal_give_no_orders() -> None:
    assert _shown(b"a\x1b[2J\xff\n") == b"a\\x1b[2J\\xff\n"


def test_only_one_place_prints() -> None:
    found = {
        line.strip()
        for path in CLI.rglob("*.py")
        if path.name not in RAW and "reference" not in path.parts
        for line in path.read_text().splitlines()
        if re.search(r"click\.s?echo\(", line)
    }
    assert found == PLAIN_ECHOES
