"""`ottla lab`: makes a trouble happen on a throw-away node, then explains it."""

from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from ottla.cli.failure import Failure
from ottla.cli.numbers import OFFSET
from ottla.cli.output import json_option, say, show_one, show_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ottla.lab.campaign import Outcome
    from ottla.lab.clients import Clients
    from ottla.lab.scenario import Scenario


@click.command()
@click.argument("name", required=False)
@json_option
@click.option(
    "--seed", type=OFFSET, default=1, show_default=True, help="Another seed gives other names and numbers."
)
@click.option("--healthy", is_flag=True, help="The same actors without the fault.")
@click.option(
    "--java",
    type=click.Path(exists=True, file_okay=False),
    metavar="DIRECTORY",
    help="Write the actors with Java's client, where possible. Its jars are here, for example in "
    "/opt/kafka/libs.",
)
def lab(name: str | None, as_json: bool, seed: int, healthy: bool, java: str | None) -> None:
    """Make the trouble NAME happen on a throw-away node, with real clients, and explain it.

    Without NAME, lists the troubles. A question (silent, twice, order or slow) plays all of its troubles, one
    after the other. Nothing of it stays on the disk.
    """
    from ottla.lab.campaign import play
    from ottla.lab.scenario import SCENARIOS

    if name is None:
        rows = [
            {"name": item.name, "question": item.question, "what_happens": item.story}
            for item in SCENARIOS.values()
        ]
        show_rows(rows, as_json, "")
        return
    chosen = [item for item in SCENARIOS.values() if name in (item.name, item.question)]
    if not chosen:
        raise Failure(f"there is no trouble {name!r}; `ottla lab` lists them")
    with ExitStack() as stack:
        clients = None if java is None else _in_java(stack, java)
        _play_all(chosen, as_json, lambda item: play(item, seed, not healthy, clients), seed)


def _in_java(stack: ExitStack, directory: str) -> "Clients":
    from ottla.lab.clients import JAVA, Clients
    from ottla.lab.java import NoJava, compiled_client

    try:
        return Clients((JAVA,), stack.enter_context(compiled_client(directory)))
    except NoJava as error:
        raise Failure(str(error)) from None


def _play_all(
    chosen: "Sequence[Scenario]", as_json: bool, play: "Callable[[Scenario], Outcome]", seed: int
) -> None:
    for item in chosen:
        if not as_json:
            say(f"{item.name}: {item.story}")
        outcome = play(item)
        if outcome.answer is None:
            raise Failure(f"{item.name} could not be played: {outcome.trouble}")
        if as_json:
            show_one({"scenario": item.name, "seed": seed, **outcome.answer.as_json()}, as_json)
        else:
            from ottla.explain.answer import render

            say(f"$ ottla why {item.question} ...\n{render(outcome.answer)}\n")
