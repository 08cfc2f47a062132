"""Damage a node's files at random, again and again, and see what the next start makes of it.

    python -m tests.damage.rounds --rounds 300 --seed 1

Each round: a node wrote everything that there is, and was stopped cleanly or killed; one or two of its files
are damaged; it starts again. Whatever is wrong is printed with its seed, and with what was done.
"""

import argparse
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random

from tests.damage.judge import Silent, judge
from tests.damage.world import World, make_world
from tests.damage.wounds import Wound, damage
from tests.support.ottla_node import OttlaNode, ottla_command

ROUNDS_PER_WORLD = 12


class Outcome(Counter[str]):
    """How many rounds ended in which way."""

    def __str__(self) -> str:
        return ", ".join(f"{count} {what}" for what, count in sorted(self.items()))


def run_rounds(root: Path, first_seed: int, rounds: int, *, goes_on: bool = False) -> Outcome:
    """Run so many rounds from a seed on. Raises `Silent` with the seed at the first that is wrong.

    With `goes_on`, all are run, and what is wrong is printed.
    """
    outcome = Outcome()
    world: World | None = None
    for seed in range(first_seed, first_seed + rounds):
        base = seed - seed % ROUNDS_PER_WORLD
        if world is None or seed == base:
            shutil.rmtree(root / "world", ignore_errors=True)
            world = make_world(root / "world", Random(base))
        try:
            outcome[run_round(root, world, seed)] += 1
        except Silent as error:
            if not goes_on:
                raise
            print(f"WRONG: {error}", flush=True)
            outcome["wrong"] += 1
    return outcome


def run_round(root: Path, world: World, seed: int) -> str:
    """Damage a copy of a world, start a node on it, and say how it ended."""
    rng = Random(seed)
    where = root / f"round-{seed}"
    copy = world.copy_to(where)
    wounds = [damage(copy.directories, rng, is_clean=world.is_clean)]
    if rng.random() < 0.15:
        wounds.append(damage(copy.directories, rng, is_clean=world.is_clean))
    try:
        ending = _start_and_judge(where, copy, starts_again=rng.random() < 0.3)
    except (AssertionError, subprocess.TimeoutExpired) as error:
        how = "a clean stop" if world.is_clean else "kill -9"
        raise Silent(
            f"seed {seed}, after {how}, {_words(wounds, where)}: {error}\\n"
            f"  see {where}, and: python -m tests.damage.rounds --rounds 1 --seed {seed}"
        ) from error
    print(f"{seed}: {'clean' if world.is_clean else 'killed'}: {_words(wounds, where)}: {ending}", flush=True)
    shutil.rmtree(where)
    return ending.partition(":")[0]


def _words(wounds: list[Wound], where: Path) -> str:
    return " and ".join(f"{one.what} {one.path.relative_to(where)}" for one in wounds)


def _start_and_judge(where: Path, world: World, *, starts_again: bool) -> str:
    node = OttlaNode(where, world.settings())
    refusal = _try_to_start(node)
    if refusal is None:
        return _judge_running(node, world, starts_again=starts_again)
    repaired = _repair(node, refusal)
    if repaired is None:
        return f"refused: {refusal}"
    again = _try_to_start(node)
    if again is not None:
        raise Silent(f"repaired ({repaired}), but refused again: {again}")
    ending = _judge_running(node, world, starts_again=starts_again)
    return f"refused, repaired: {refusal} / {ending}"


def _try_to_start(node: OttlaNode) -> str | None:
    """Start a node. Returns the sentence with which it refused."""
    before = len(node.read_log())
    try:
        node.start()
    except AssertionError:
        said = node.read_log()[before:]
        sentences = [line for line in said.splitlines() if line.startswith("Error: ")]
        if "Traceback" in said or len(sentences) != 1:
            raise Silent(f"no sentence but {said[-3000:]!r}") from None
        return sentences[0].removeprefix("Error: ")
    return None


def _judge_running(node: OttlaNode, world: World, *, starts_again: bool) -> str:
    try:
        told = judge(node.bootstrap, world.truth, node.read_log())
    finally:
        code = node.stop()
    if code:
        raise Silent(f"it stopped with {code}: {node.read_log()[-2000:]}")
    if not starts_again:
        return f"went on and told: {'; '.join(told)}" if told else "everything is there"
    # What was written is still there when it starts once more.
    node.start()
    try:
        later = judge(node.bootstrap, world.truth, node.read_log(), writes=False)
    finally:
        node.stop()
    if "Traceback" in node.read_log():
        raise Silent(node.read_log()[-3000:])
    if told or later:
        return f"went on and told: {'; '.join(told or later)}"
    return "everything is there"


def _repair(node: OttlaNode, refusal: str) -> str | None:
    """Repair what a refusal says can be. Returns what was done."""
    if "ottla storage repair" not in refusal:
        return None
    where = f"--set=log.dirs={node.settings['log.dirs']}"
    done = subprocess.run(
        ottla_command("storage", "repair", "--yes", where), capture_output=True, text=True, timeout=120
    )
    if "Traceback" in done.stderr:
        raise Silent(f"repair: {done.stderr[-3000:]}")
    if done.returncode:
        return None
    return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="ottla-damage-"))
    outcome = run_rounds(root, options.seed, options.rounds, goes_on=True)
    print(f"{options.rounds} rounds from seed {options.seed} on: {outcome}")
    if outcome["wrong"]:
        raise SystemExit(1)
    shutil.rmtree(root)


if __name__ == "__main__":
    main()
