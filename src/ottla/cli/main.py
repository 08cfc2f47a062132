"""The root of the command line: which commands there are, and where they are found."""

from importlib import import_module
from typing import Any, Final

import click

from ottla import __version__
from ottla.cli.failure import Failure

COMMANDS: Final = {
    # The name, the module and object that it is, and what the list of commands says of it. It is here so
    # that the list can be shown without importing all of them.
    "up": ("ottla.cli.nodes.up", "up", "Run a node until it is stopped."),
    "topic": ("ottla.cli.admin.topic", "topic", "Topics: list, create, describe, alter, delete, truncate."),
    "produce": ("ottla.cli.records.produce", "produce", "Write records from stdin to a topic."),
    "consume": ("ottla.cli.records.consume", "consume", "Read records from topics and print them."),
    "group": ("ottla.cli.admin.group", "group", "Consumer groups: list, describe with lag, reset, delete."),
    "share": ("ottla.cli.admin.share", "share", "Share groups (queues): list, describe, reset, consume."),
    "lag": ("ottla.cli.explain.lag", "lag", "How far groups are behind, and what will come of it."),
    "why": ("ottla.cli.explain.why", "why", "Why silent, twice, lost, out of order or slow."),
    "journal": ("ottla.cli.explain.journal", "journal", "What the nodes saw: readers, refusals, leaders."),
    "trace": ("ottla.cli.explain.trace", "trace", "The story of one record, as text, JSON or a picture."),
    "hot": ("ottla.cli.explain.hot", "hot", "Which keys and partitions of a topic carry the load."),
    "audit": ("ottla.cli.explain.audit", "audit", "Which delivery guarantee holds, hop by hop."),
    "doctor": ("ottla.cli.explain.doctor", "doctor", "Check a cluster: lag, members, brokers, producers."),
    "health": ("ottla.cli.clusters.health", "health", "Are all brokers up and all partitions in order?"),
    "lab": ("ottla.cli.explain.lab", "lab", "Make a trouble happen on a throw-away node, and explain it."),
    "cluster": (
        "ottla.cli.clusters.commands",
        "cluster",
        "Nodes: describe, balance, drain, reassign, elect.",
    ),
    "config": ("ottla.cli.admin.config", "config", "Configs of topics, brokers and groups: get and set."),
    "export": ("ottla.cli.desired.commands", "export", "Print what the cluster is, as one file."),
    "plan": ("ottla.cli.desired.commands", "plan", "Show what `apply` of a file would change."),
    "apply": ("ottla.cli.desired.commands", "apply", "Make the cluster what a file says."),
    "acl": ("ottla.cli.admin.acl", "acl", "Access rules: list, add, remove, and why something is denied."),
    "user": ("ottla.cli.admin.user", "user", "Users with a password: list, set, remove."),
    "token": ("ottla.cli.admin.token", "token", "Delegation tokens: create, list, renew, end."),
    "quota": ("ottla.cli.admin.quota", "quota", "Quotas of users, client ids and addresses."),
    "feature": ("ottla.cli.admin.feature", "feature", "Features of the cluster: list, upgrade."),
    "txn": ("ottla.cli.admin.txn", "txn", "Transactions: list, describe, abort."),
    "quorum": ("ottla.cli.admin.quorum", "quorum", "The metadata quorum: status, add, remove."),
    "console": ("ottla.cli.console", "console", "Web pages of a cluster, until they are stopped."),
    "pipeline": ("ottla.cli.pipeline", "pipeline", "Data pipelines: run, list, status, stop."),
    "mirror": ("ottla.cli.mirror", "mirror", "Mirrors of another cluster: run, status, failover."),
    "registry": ("ottla.cli.schemas.registry", "registry", "Run a schema registry until it is stopped."),
    "schema": ("ottla.cli.schemas.schema", "schema", "Schemas: list, get, register, check, diff, delete."),
    "connect": ("ottla.cli.connect", "connect", "Run a worker of connectors until it is stopped."),
    "table": ("ottla.cli.table", "table", "Topics that are tables: create, list, delete."),
    "connector": (
        "ottla.cli.connector",
        "connector",
        "Connectors: list, describe, create, pause, delete.",
    ),
    "storage": (
        "ottla.cli.directories.storage",
        "storage",
        "Data directories: format, info, verify, repair.",
    ),
    "log": ("ottla.cli.directories.log", "log", "Log files: dump, verify, salvage."),
    "graduate": ("ottla.cli.directories.graduate", "graduate", "Hand a data directory over to Apache Kafka."),
    "bench": ("ottla.cli.bench", "bench", "Measure a cluster: writing, reading, latency."),
    "profile": ("ottla.cli.profile", "profile", "Clusters by name: list, create, use."),
    "debug": ("ottla.cli.bundle", "debug", "Gather what somebody needs to help you."),
    "completion": ("ottla.cli.completion", "completion", "Print a shell completion script."),
    "version": ("ottla.cli.version", "version", "Show the versions of Ottla and Python."),
}


class _Root(click.Group):
    """The commands, each imported when it is used."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[name]
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name == "help":
            # Many others have it. `ottla help topic` is `ottla topic --help`.
            args = [*args[1:], "--help"]
            name = args[0]
            if name == "--help":
                from ottla.cli.output import say

                say(ctx.get_help())
                ctx.exit()
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            # Click itself would look for a similar name only among commands that are imported.
            from difflib import get_close_matches

            near = get_close_matches(name, COMMANDS, 1)
            ctx.fail(f"No such command {name!r}." + (f" Did you mean {near[0]!r}?" if near else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_text) for name, (_, _, help_text) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # The reader of our output has closed it. Python would complain when it flushes at the end.
            import os
            import sys

            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise click.exceptions.Exit(0) from None
        except UnicodeEncodeError as error:
            # Words may be any bytes, since files and values may. Names may not.
            raise Failure(f"{error.object[:60]!r} is not valid text: it must be UTF-8") from error
        except OSError as error:
            if error.filename is None:
                raise
            raise Failure(f"cannot use {error.filename}: {error.strerror}; name another") from error


@click.group(cls=_Root, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__)
def main() -> None:
    """Ottla: Kafka's sister in Python.

    All commands except `up`, `storage`, `log` and `graduate` work with any Kafka cluster. Name one of its
    brokers with --bootstrap, in the environment variable OTTLA_BOOTSTRAP, or in a profile.
    """
