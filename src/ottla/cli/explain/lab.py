"""`ottla lab`: makes a trouble happen on a throw-away node, then explains it."""

import click

from ottla.cli.failure import Failure
from ottla.cli.numbers import OFFSET
from ottla.cli.output import json_option, show_one, show_rows


@click.command()
@click.argument("name", required=False)
@json_option
@click.option(
    "--seed", type=OFFSET, default=1, show_default=True, help="Another seed gives other names and numbers."
)
@click.option("--healthy", is_flag=True, help="The same actors without the fault.")
def lab(name: str | None, as_json: bool, seed: int, healthy: bool) -> None:
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
    for item in chosen:
        if not as_json:
            click.echo(f"{item.name}: {item.story}")
        outcome = play(item, seed, not healthy)
        if outcome.answer is None:
            raise Failure(f"{item.name} could not be played: {outcome.trouble}")
        if as_json:
            show_one({"scenario": item.name, "seed": seed, **outcome.answer.as_json()}, as_json)
        else:
            from ottla.explain.answer import render

            click.echo(f"$ ottla why {item.question} ...\n{render(outcome.answer)}\n")
