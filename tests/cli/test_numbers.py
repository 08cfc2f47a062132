"""Numbers beyond all bounds, in every option of every command, end in a sentence and never in a traceback."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest
from click.testing import CliRunner
from tests.cli.typing import fail, run, succeed

from ottla.cli.main import main

BEYOND = (str(10**30), str(-(10**30)), str(2**64), str(-(2**63) - 1), "1e12", "1e999", "nan", "-1e400")
AT_THE_BOUND = (str(2**63 - 1), str(-(2**63 - 1)), str(2**31 - 1), str(2**31), "-1", "0")
WORDS = {
    "name": "bounds",
    "names": "bounds",
    "topic": "bounds",
    "topics": "bounds",
    "kind": "topic",
    "transactional_id": "bounds",
}
TIMES = {"--until", "--to-time", "--offset"}
# What else has to be said for the option to count.
COMPANIONS = {
    ("produce", "--partition"): ("--value=x",),
    ("txn", "abort", "--open-for"): ("--topic=bounds", "--yes"),
    # Speeds are measured for two seconds.
    ("lag", "--caution"): ("--once",),
    ("lag", "--warning"): ("--once",),
    ("lag", "--critical"): ("--once",),
}


class Numeric(NamedTuple):
    """An option that takes a number."""

    path: tuple[str, ...]
    option: str
    arguments: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join((*self.path, self.option))


def numeric_options(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[Numeric]:
    """Walk all commands for options that take a number, or a time."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from numeric_options(below, (*path, name))
        return
    for parameter in command.params:
        longest = max(parameter.opts, key=len)
        is_number = isinstance(parameter.type, click.IntRange | click.FloatRange) or parameter.type in (
            click.INT,
            click.FLOAT,
        )
        if isinstance(parameter, click.Option) and not parameter.count and (is_number or longest in TIMES):
            yield Numeric(path, longest, tuple(_arguments(command)))


def _arguments(command: click.Command) -> Iterator[str]:
    for parameter in command.params:
        if isinstance(parameter, click.Argument) and parameter.required:
            yield WORDS.get(parameter.name or "", "bounds")
        elif isinstance(parameter, click.Argument) and parameter.name == "topics":
            yield "bounds"


# A benchmark and satellites would run on.
RUN_ON = ("bench", "registry", "connect", "console", "mirror")
OPTIONS = [option for option in numeric_options(main) if option.path[0] != "up"]


@pytest.fixture(scope="module")
def bounds(ottla_bootstrap: str) -> str:
    succeed("topic", "create", "bounds", "--if-not-exists", bootstrap=ottla_bootstrap)
    return ottla_bootstrap


def test_the_walk_finds_them() -> None:
    found = {str(option) for option in OPTIONS}
    assert {
        "topic create --partitions",
        "topic create --replication-factor",
        "topic alter --partitions",
        "produce --partition",
        "consume --partition",
        "consume --offset",
        "consume --until",
        "consume --count",
        "group reset --shift-by",
        "group reset --to-time",
        "group describe --watch",
        "txn list --longer-than",
        "bench --records",
    } <= found


@pytest.mark.parametrize("option", OPTIONS, ids=str)
def test_a_number_beyond_all_bounds_is_refused_in_a_sentence(bounds: str, option: Numeric) -> None:
    for number in BEYOND:
        typed = _type(option, number, bounds)
        assert typed.exit_code in (0, 1, 2), typed.output
        assert typed.exit_code or option.option == "--to-time", (number, typed.output)


@pytest.mark.parametrize(
    "option",
    [option for option in OPTIONS if option.path[0] not in RUN_ON],
    ids=str,
)
def test_a_number_at_the_bound_ends_in_a_sentence_or_works(bounds: str, option: Numeric) -> None:
    for number in AT_THE_BOUND:
        assert _type(option, number, bounds).exit_code in (0, 1, 2)


def _type(option: Numeric, number: str, bootstrap: str) -> Any:
    also = COMPANIONS.get((*option.path, option.option), ())
    words = [*option.path, *option.arguments, *also, f"{option.option}={number}"]
    typed = CliRunner().invoke(
        main, words, input="", env={"OTTLA_BOOTSTRAP": bootstrap, "OTTLA_CONFIG": "/dev/null"}
    )
    assert typed.exception is None or isinstance(typed.exception, SystemExit), (words, typed.exception)
    assert "Traceback" not in typed.output, words
    return typed


@pytest.mark.parametrize("number", [*BEYOND, "65536", "-1"])
def test_a_port_is_a_port(number: str) -> None:
    assert run("up", f"--port={number}").code == 2


@pytest.mark.parametrize("number", BEYOND)
def test_a_config_of_a_node_has_bounds(tmp_path: Path, number: str) -> None:
    said = fail("up", "--port=0", "--data", str(tmp_path / "data"), "--set", f"num.partitions={number}")
    assert "num.partitions" in said


@pytest.mark.parametrize(
    "name",
    [
        "request.timeout.ms",
        "linger.ms",
        "buffer.memory",
        "batch.size",
        "max.block.ms",
        "delivery.timeout.ms",
        "metadata.max.age.ms",
        "retry.backoff.ms",
        "socket.connection.setup.timeout.ms",
    ],
)
@pytest.mark.parametrize("number", BEYOND)
def test_a_property_of_a_client_has_bounds(bounds: str, name: str, number: str) -> None:
    said = fail("produce", "bounds", "-v", "x", "-X", f"{name}={number}", bootstrap=bounds)
    assert said.startswith(f"{name} is ")


@pytest.mark.parametrize("name", ["session.timeout.ms", "fetch.max.bytes", "max.poll.interval.ms"])
def test_a_property_that_is_sent_in_four_bytes_fits_in_them(bounds: str, name: str) -> None:
    said = fail("consume", "bounds", "--group=g", "-X", f"{name}={2**31}", bootstrap=bounds)
    assert said.startswith(f"{name} is {2**31}: it must be at most {2**31 - 1}")
