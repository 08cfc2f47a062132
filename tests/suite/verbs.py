"""What `make bench` and `make crash` can run: `python -m tests.suite.verbs crash node --times 9 --seed 7`.

Each name stands for programs or tests that take long, with the option that says how often or how much. What
stands behind `--` is given to the program: that is what `WITH="..."` of the verbs does.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.suite.selection import ROOT


@dataclass(frozen=True)
class Run:
    """A program, or a file of tests, and how it is told what to do."""

    target: str
    about: str
    times: str = ""
    """The option that says how often: of a file of tests, the variable of the environment."""
    default: str = ""
    """How often, if nobody says so."""
    seed: str = ""
    """The option for a seed."""
    options: tuple[str, ...] = ()
    then: tuple[str, ...] = ()
    """Programs that run afterwards, each with what stands behind its name."""

    def commands(self, times: str, seed: str, more: Sequence[str]) -> tuple[list[list[str]], dict[str, str]]:
        """Return the commands, and what they need in their environment."""
        times = times or self.default
        if seed and not self.seed:
            raise UnknownRun(f"{self.target} takes no seed")
        if times and not self.times:
            raise UnknownRun(f"{self.target} cannot be told how often")
        if self.target.endswith(".py"):
            pytest = ["pytest", "-q", "-n", "0", "--timeout", "7200", "--oracle", "live", self.target, *more]
            return [pytest], {self.times: times} if times else {}
        options = [self.times, times] if times else []
        options += [self.seed, seed] if seed else []
        return [[self.target, *self.options, *options, *more], *(name.split() for name in self.then)], {}


class UnknownRun(Exception):
    pass


BENCHES: Final[Mapping[str, Run]] = {
    "node": Run("benchmarks.node", "a node beside Apache Kafka; WITH='--rows start,produce'", "--scale"),
    "front-door": Run(
        "benchmarks.front_door", "10,000 partitions, 5,000 idle connections, beside Apache Kafka"
    ),
    "before": Run("benchmarks.before", "a node beside that of another commit; WITH=HEAD~10", "--rounds"),
    "cluster": Run("benchmarks.cluster", "three nodes beside three brokers of Apache Kafka", "--scale"),
    "client": Run(
        "benchmarks.client", "our client beside aiokafka, kafka-python and confluent-kafka", "--rounds"
    ),
    "codec": Run("benchmarks.codec", "the codecs beside those of other Python projects"),
    "connect": Run("benchmarks.connect", "connectors beside those of Kafka Connect", "--blocks"),
    "expensive": Run(
        "benchmarks.expensive", "the dearest requests, and what others wait; WITH='--api FETCH'"
    ),
    "fixture": Run("benchmarks.fresh_nodes", "200 tests that each get a fresh node"),
    "groups": Run(
        "benchmarks.groups",
        "heartbeats and commits of groups of each kind, beside Apache Kafka",
        "--scale",
        then=("benchmarks.consumer_groups", "benchmarks.share_groups"),
    ),
    "journal": Run("benchmarks.journal", "what the journal costs a node", "--pairs"),
    "log": Run("benchmarks.log", "append, look-up, group commit, recovery, compaction"),
    "mirror": Run("benchmarks.mirror", "ottla mirror beside MirrorMaker 2", "--rounds"),
    "pipelines": Run("benchmarks.pipelines", "source and sink beside Spark's own Kafka connector", "--rows"),
    "quorum": Run("benchmarks.quorum", "the time without an active controller", "--rounds"),
    "registry": Run("benchmarks.registry", "the schema registry and its serializers"),
    "restart": Run("benchmarks.groups", "a restart with 5,000 groups", "--scale", options=("--restart",)),
    "security": Run("benchmarks.security", "what TLS, logins and access rules cost", "--scale"),
}

CRASHES: Final[Mapping[str, Run]] = {
    "node": Run("tests.cluster.crashes", "kill a node under load", "--kills", "100", "--seed"),
    "campaign": Run(
        "tests.cluster.campaign",
        "break three real nodes while clients work; WITH='--nodes mixed --client java' (needs root)",
        "--operations",
        "20000",
        "--seed",
    ),
    "power-cuts": Run(
        "tests.cluster.campaign",
        "cut the power of three nodes at once (needs root)",
        "--times",
        "300",
        "--seed",
        options=("--faults", "cut-power-of-all", "--interval", "1.5"),
    ),
    "guarantees": Run(
        "tests.cluster.guarantees",
        "check what clients saw of a node",
        "--operations",
        "100000",
        "--first-seed",
    ),
    "client-faults": Run(
        "tests.clients.under_faults",
        "what our client, Java's and librdkafka's do under the same faults (needs Java and Maven)",
    ),
    "damage": Run("tests.damage.rounds", "damage the files of a stopped node", "--rounds", "300", "--seed"),
    "bit-rot": Run("tests.cluster.bit_rot", "flip bits under nodes that run", "--rounds", "200", "--seed"),
    "groups": Run(
        "tests.clients.group_endurance",
        "kill members of a group and their broker",
        "--minutes",
        "5",
        "--seed",
    ),
    "quorum": Run("tests/cluster/test_quorum_failover.py", "kill the active controller", "KILLS", "50"),
    "clients": Run(
        "tests/cluster/test_clients_through_restarts.py",
        "restart a broker under our client",
        "RESTARTS",
        "20",
    ),
    "exactly-once": Run(
        "tests/cluster/test_exactly_once.py", "copy records with four clients under kills", "RECORDS", "50000"
    ),
    "copies": Run("tests.cluster.apache_copies", "Apache Kafka's copier under kills", "--messages", "100000"),
    "mirrors": Run("tests/cluster/test_mirror_kills.py", "kill mirrors and both ends", "MIRROR_KILLS", "5"),
    "pipelines": Run("tests.pipelines.kills", "kill pipelines and their broker", "--kills", "20", "--seed"),
    "connectors": Run("tests.connect.changes", "kill a connector, its broker, PostgreSQL", "--kills", "30"),
    "frames": Run("tests.fuzz.hostile_frames", "decode hostile frames", "--frames", "1000000", "--seed"),
    "logins": Run("tests.fuzz.hostile_logins", "talk as a hostile peer", "--talks", "100000", "--seed"),
    "requests": Run("tests.fuzz.hostile_requests", "serve spoilt requests", "--requests", "200000", "--seed"),
    "siege": Run("tests.cluster.siege", "many peers that never log in", "--peers", "2000"),
}

VERBS: Final = {"bench": BENCHES, "crash": CRASHES}


def find_run(verb: str, what: str) -> Run:
    try:
        return VERBS[verb][what]
    except KeyError:
        known = "\n".join(f"  {name:<14}{run.about}" for name, run in VERBS[verb].items())
        raise UnknownRun(f"make {verb} WHAT=... takes one of these:\n{known}") from None


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=VERBS)
    parser.add_argument("what")
    parser.add_argument("--times", default="")
    parser.add_argument("--seed", default="")
    # What follows `--` is for the run. argparse takes an empty list for it before it has seen the options.
    end = arguments.index("--") if "--" in arguments else len(arguments)
    asked, more = parser.parse_args(arguments[:end]), arguments[end + 1 :]
    try:
        run = find_run(asked.verb, asked.what)
        commands, environment = run.commands(asked.times, asked.seed, more)
    except UnknownRun as error:
        print(error, file=sys.stderr)
        return 2
    for command in commands:
        print("python -m", *command, flush=True)
        done = subprocess.call([sys.executable, "-m", *command], cwd=ROOT, env=os.environ | environment)
        if done:
            return done
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
