"""`ottla graduate`: a stopped data directory, ready for Apache Kafka.

The directory is Kafka's own format already, so nothing is converted: it is checked, and Apache Kafka gets the
configuration that it needs to open it. With `--verify` both servers open a copy each, and everything that a
client can ask for is compared.
"""

import os
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ottla.cli.failure import Failure
from ottla.cli.output import json_option, progress, show_done

if TYPE_CHECKING:
    from ottla.cli.directories.directory_checks import Contents

KAFKA_PORT = 9092
CONTROLLER_PORT = 9093


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@json_option
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default="server.properties",
    show_default=True,
    help="Where to write Apache Kafka's configuration.",
)
@click.option("--force", is_flag=True, help="Overwrite the output file if it exists.")
@click.option(
    "--verify", is_flag=True, help="Start Apache Kafka on a copy of the directory and compare everything."
)
@click.option(
    "--kafka-home",
    envvar="KAFKA_HOME",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="For --verify: the directory where Apache Kafka 4.3 is unpacked (its jars are in libs).",
)
def graduate(
    directory: Path, as_json: bool, output: Path, force: bool, verify: bool, kafka_home: Path | None
) -> None:
    """Check that the stopped data directory DIRECTORY is ready for Apache Kafka, and show the next steps."""
    contents = _check(directory)
    if output.exists() and not force:
        raise Failure(f"{output} already exists: name another file with --output, or add --force")
    differences: list[str] | None = None
    if verify:
        differences = _compare(directory, contents, kafka_home)
        if differences:
            raise Failure(f"Apache Kafka reads different data from the copy: {'; '.join(differences[:10])}")
    output.write_text(server_properties(directory, contents, KAFKA_PORT, CONTROLLER_PORT))
    command = f"bin/kafka-server-start.sh {shlex.quote(str(output.absolute()))}"
    way_back = f"ottla up --data {shlex.quote(str(directory.absolute()))}"
    compared = "; Apache Kafka reads the same data from a copy" if verify else ""
    show_done(
        f"{directory} is ready for Apache Kafka{compared}.\nIn Apache Kafka's directory, run:\n  {command}\n"
        f"To come back, stop it, then run:\n  {way_back}",
        as_json,
        directory=str(directory),
        properties=str(output.absolute()),
        command=command,
        way_back=way_back,
        verified=verify,
    )


def server_properties(directory: Path, contents: "Contents", port: int, controller_port: int) -> str:
    """Return the configuration with which Apache Kafka opens a directory as a single node."""
    node_id = contents.meta.node_id
    quorum = (
        f"controller.quorum.bootstrap.servers=127.0.0.1:{controller_port}"
        if contents.has_dynamic_quorum
        else f"controller.quorum.voters={node_id}@127.0.0.1:{controller_port}"
    )
    listeners = f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}"
    return "\n".join(
        (
            "# Written by `ottla graduate`. Add what your own server.properties had.",
            "process.roles=broker,controller",
            f"node.id={node_id}",
            f"log.dirs={directory.absolute()}",
            f"listeners={listeners}",
            f"advertised.listeners={listeners}",
            "controller.listener.names=CONTROLLER",
            "inter.broker.listener.name=PLAINTEXT",
            "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            quorum,
            "# One broker cannot hold three replicas of Kafka's internal topics.",
            "offsets.topic.replication.factor=1",
            "transaction.state.log.replication.factor=1",
            "transaction.state.log.min.isr=1",
            "share.coordinator.state.topic.replication.factor=1",
            "share.coordinator.state.topic.min.isr=1",
            "",
        )
    )


def _check(directory: Path) -> "Contents":
    from ottla.cli.directories.directory_checks import UnusableData, find_problems, read_contents

    try:
        contents = read_contents(directory)
    except UnusableData as error:
        raise Failure(str(error)) from error
    if contents.is_in_use:
        raise Failure(f"a server is using {directory}: stop it first")
    if not contents.was_stopped_cleanly:
        raise Failure(
            f"{directory} was not shut down cleanly: start it with `ottla up --data {directory}`, and stop "
            "it with Ctrl-C"
        )
    with progress(contents.partitions, "checking") as bar:
        problems = list(find_problems(directory, lambda: bar.update(1)))
    if problems:
        first = problems[0]
        raise Failure(
            f"{len(problems)} problems, the first in {first.path}: {first.what}; "
            "`ottla storage verify` lists all of them"
        )
    return contents


def _compare(directory: Path, contents: "Contents", kafka_home: Path | None) -> list[str]:
    java = shutil.which("java")
    if java is None:
        raise Failure("--verify needs Java 17 or newer: install it, or leave --verify out")
    libs = None if kafka_home is None else kafka_home / "libs"
    if libs is None or not list(libs.glob("kafka-clients-*.jar")):
        raise Failure("--verify needs Apache Kafka's jars: give its directory in --kafka-home or KAFKA_HOME")
    from ottla.cli.directories.hand_over import compare_with_kafka

    return compare_with_kafka(directory, contents, java, os.fspath(libs / "*"))
