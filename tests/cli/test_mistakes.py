"""Whatever is typed, a sentence comes back and never a traceback."""

import random
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from tests.cli.typing import fail

from ottla.cli.main import main
from ottla.testing.node import ThreadNode

NOBODY = "127.0.0.1:1"
WORDS = (
    "", " ", "-", "--", "-1", "0", "1", "7", "99999999999999999999", "1.5", "nan", "abc", "default", "all",
    "orders", "readers", "no such", "ä/ö", "a" * 300, "=", "k=v", "=v", "k=", "k=1,2", "@2h", "1h", "10GB",
    "2026-01-31T12:00", "{}", "[1", '{"vlaue": 1}', "null", "\x1b[31m", "\udcff", "^(", "*", "%s",
    "127.0.0.1", "http://127.0.0.1:9092", "host:port", "__consumer_offsets", "true", "READ", "user:x",
    "topic:orders", "/dev/null", "readers-1", "PLAIN", "-Xa=b", "--json", "--yes", "--help", "--wrong",
)  # fmt: skip
LASTS = frozenset(
    (
        "up",
        "registry serve",
        "registry",
        "connect",
        "console",
        "lab",
        "bench",
        "completion",
        "mirror run",
        "pipeline run",
    )
)
"""Commands that serve or measure until they are stopped, or that start others."""


def leaves(
    command: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Give all commands that are no groups, with the words that name them."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from leaves(found, (*path, name))
    else:
        yield path, command


COMMANDS = [
    (path, command) for path, command in leaves(main) if " ".join(path) not in LASTS and path[0] not in LASTS
]


def mistake(rng: random.Random) -> list[str]:
    """Return some words that somebody might type."""
    path, command = rng.choice(COMMANDS)
    words = list(path)
    options = [one for one in command.params if isinstance(one, click.Option)]
    arguments = [one for one in command.params if isinstance(one, click.Argument)]
    for option in rng.sample(options, min(len(options), rng.randrange(4))):
        words.append(rng.choice(option.opts))
        if not option.is_flag and rng.random() < 0.9:
            words.append(value(rng, option.type))
    words += [value(rng, argument.type) for argument in arguments if rng.random() < 0.9]
    if rng.random() < 0.2:
        words.append(rng.choice(WORDS))
    if any(one.name == "over_s" for one in options) and "--over" not in words:
        words.append("--over=0.1")
    # These would go on until somebody stops them.
    return [word for word in words if word not in ("--follow", "-f", "--watch")]


def value(rng: random.Random, kind: Any) -> str:
    if isinstance(kind, click.Choice) and rng.random() < 0.7:
        return str(rng.choice(tuple(kind.choices)))
    return rng.choice(WORDS)


def type_them(seed: int, count: int, bootstrap: str) -> None:
    rng = random.Random(seed)
    config = Path("config.toml")
    config.write_text("")
    environment = {
        "OTTLA_CONFIG": str(config),
        "OTTLA_BOOTSTRAP": bootstrap,
        "OTTLA_PROPERTY_DEFAULT_API_TIMEOUT_MS": "3000",
        "OTTLA_PROPERTY_MAX_BLOCK_MS": "3000",
    }
    for number in range(count):
        words = mistake(rng)
        result = CliRunner().invoke(main, words, input="", env=environment)
        where = f"seed {seed}, number {number}: ottla {words!r}"
        assert result.exception is None or isinstance(result.exception, SystemExit), where
        assert result.exit_code in (0, 1, 2, 10, 11), where
        assert "Traceback" not in result.output, where
        if result.exit_code in (1, 2):
            assert result.stderr.strip(), f"{where} says nothing"


@pytest.mark.parametrize("seed", range(3))
def test_mistakes_are_answered_with_a_sentence(seed: int, tmp_path: Path) -> None:
    with chdir(tmp_path):
        type_them(seed, 100, NOBODY)


@pytest.mark.thorough(guard="tests/cli/test_mistakes.py::test_mistakes_are_answered_with_a_sentence")
def test_ten_thousand_mistakes_are_answered_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "typed").mkdir()
    with ThreadNode(tmp_path / "node", {"ottla.journal.enable": "true"}) as node, chdir(tmp_path / "typed"):
        node.create_topic("orders", partitions=2)
        node.produce("orders", "coffee", key="k")
        type_them(100, 10_000, node.bootstrap)


def test_an_address_that_is_none_is_answered_with_a_sentence() -> None:
    for url in ("\x1b[31m", " ", "http://[", "http://a b:1"):
        assert "Traceback" not in fail("schema", "list", "--registry", url)
