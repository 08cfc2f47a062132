"""What people read is plain English: the README, the guide, the help of commands, logs, errors, comments.

The turns below are archaic, literary, or not idiomatic. Native readers stumble on them.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.tidy.source import ROOT, comments_of, docstrings_of, module_name, modules, texts_of

TURNS = {
    r"who(ever|mever|so)\b": "if somebody, any client that",
    r"\banew\b": "again, new",
    r"(^|[.:;,] |\band |\bif )who (asks|waits|wants|has|does|sends|holds)\b(?! what)": "a client that",
    r"\b(for|to|of|from|by|with) who\b": "for clients that",
    r"\bso (it is|is it|they are|do we|it does) here\b": "as in Kafka",
    r"\b(is|are|was|were|be|been|being|not) told\b": "learns, gets, is given",
    r"\bis of no (use|account)\b": "is useless",
    r"\bnor (is|are|does|do|has|have|gets?) (it|they|there|we)\b": "neither",
    r"\b(would|could|might|may|can|will|must|has to) else\b": "would otherwise",
    r"(?<!or )\belse (be|have|it|they|the|a|there)\b": "otherwise",
    r"\bby nobody\b": "by anything",
    r"\bbut so\b": "in another way",
    r"\bformats? of old\b": "old formats",
    r"\bshall\b": "must, will",
    r"\b(lest|hence|thus|whence|henceforth|nought|ere|amid|upon)\b": "-",
    r"\b(there|where)(of|in|by|upon|with)\b": "of it, in which",
    r"\bstands? in the (reference|docs|guide|page)\b": "is in the",
    r"\bfor a hint\b": "as a hint",
    r"\bso (many|much|long|large|small|few) (as|of it|and no more)\b": "as many as",
    r"\bis (not )?the one any more\b": "is no longer",
    r"\bkeeps? (nothing|nobody|no one) from\b": "does not prevent",
    r"\bare let\b": "may",
    r"\bin good order\b": "cleanly",
    r"\bin vain\b": "without success",
    r"\bfarewell\b": "-",
    r"\bby halves\b": "in part",
}
_TURN = re.compile("|".join(f"(?:{turn})" for turn in TURNS), re.IGNORECASE)


def find_turns(text: str) -> list[str]:
    """Return what should be said in plain words."""
    return [match.group() for match in _TURN.finditer(" ".join(text.split()))]


def _pages() -> list[Path]:
    """Return the pages for users. Those on the internals and decisions are for developers."""
    top = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
    return [
        *top,
        *sorted(ROOT.glob("docs/*.md")),
        *sorted(ROOT.glob("docs/guide/*.md")),
        *sorted(ROOT.glob("examples/**/*.md")),
    ]


def _texts_for_users(path: Path) -> Iterator[str]:
    """Return the strings of a module: logs, errors and options. The help of a command is its docstring."""
    tree = modules()[path]
    yield from texts_of(tree)
    if module_name(path).startswith("ottla.cli"):
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.decorator_list:
                yield ast.get_docstring(node) or ""


def test_pages_are_in_plain_words() -> None:
    found = {page.relative_to(ROOT).as_posix(): find_turns(page.read_text()) for page in _pages()}
    assert {page: turns for page, turns in found.items() if turns} == {}


def test_help_logs_and_errors_are_in_plain_words() -> None:
    found = {path.as_posix() for path in modules() if any(map(find_turns, _texts_for_users(path)))}
    assert found == set()


def test_comments_and_docstrings_are_in_plain_words() -> None:
    found = {
        path.as_posix(): turns
        for path, tree in modules().items()
        if (
            turns := [
                turn
                for text in (*docstrings_of(tree), *comments_of((ROOT / path).read_text()))
                for turn in find_turns(text)
            ]
        )
    }
    assert found == {}


@pytest.mark.parametrize(
    "text",
    [
        "Whoever reaches the port could read everything.",
        "The files are opened\nanew.",
        "An answer for who does not send them.",
        "So it is here.",
        "A new topic would else be taken for a clean one.",
    ],
)
def test_a_turn_is_found(text: str) -> None:
    assert find_turns(text)


@pytest.mark.parametrize(
    "text",
    ["Use it if a name is missing, or else it fails.", "The client that asks is refused.", "Who am I?"],
)
def test_plain_words_are_let_through(text: str) -> None:
    assert not find_turns(text)
