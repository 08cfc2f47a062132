"""`ottla graduate`: a stopped data directory, ready for Apache Kafka.

The directory is Kafka's own format already, so nothing is converted: it is checked, and Apache Kafka gets the
configuration that it needs to open it. With `--verify` both servers open a copy each, and everything that a
client can ask for is compared.
"""

import os
import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import click

from ottla.cli.failure import Failure
from ottla.cli.output import json_option, progress, show_done

if TYPE_CHECKING:
    from ottla.cli.directories.directory_checks import Contents

KAFKA_PORT = 9092
CONTROLLER_PORT = 9093
REMARK = "Written by `ottla graduate`. Add what your own server.properties had."


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
@click.option(
    "--config",
    "config_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The server.properties file that the node was started with: Apache Kafka gets the same settings.",
)
@click.option(
    "--clients",
    "clients_directory",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The directory of --clients, if the node was started with `ottla up --secure`.",
)
@click.option(
    "--insecure",
    is_flag=True,
    help="Let Apache Kafka serve everybody, although the metadata has users or access rules.",
)
def graduate(
    directory: Path,
    as_json: bool,
    output: Path,
    force: bool,
    verify: bool,
    kafka_home: Path | None,
    config_file: Path | None,
    clients_directory: Path | None,
    insecure: bool,
) -> None:
    """Check that the stopped data directory DIRECTORY is ready for Apache Kafka, and show the next steps."""
    from ottla.cli.nodes.secure import controller_port as secure_controller_port
    from ottla.model.properties import encode_settings
    from ottla.runtime.private_files import write_private

    contents = _check(directory)
    if output.exists() and not force:
        raise Failure(f"{output} already exists: name another file with --output, or add --force")
    port = CONTROLLER_PORT if clients_directory is None else secure_controller_port(KAFKA_PORT)
    own = _own_settings(config_file, clients_directory)
    settings = server_properties(directory, contents, KAFKA_PORT, port, own)
    if not insecure:
        _check_security(directory, contents, settings)
    if verify:
        differences = _compare(directory, contents, kafka_home)
        if differences:
            raise Failure(f"Apache Kafka reads different data from the copy: {'; '.join(differences[:10])}")
    try:
        # What was carried over may be secret.
        write_private(output, encode_settings(settings, REMARK))
    except OSError as error:
        raise Failure(f"cannot write {output}: {error.strerror}") from error
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


def server_properties(
    directory: Path,
    contents: "Contents",
    port: int,
    controller_port: int,
    own: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """Return the configuration with which Apache Kafka opens a directory as a single node.

    `own` is what the node was configured with: it holds, but for where the node and its data are.
    """
    node_id = contents.meta.node_id
    listeners = f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}"
    settings = {
        "process.roles": "broker,controller",
        "controller.listener.names": "CONTROLLER",
    }
    controller = own.get("controller.listener.names", "CONTROLLER").split(",")[0].strip()
    if "listeners" in own:
        found = re.search(rf"\b{re.escape(controller)}://\S*?:(\d+)", own["listeners"])
        if found is None:
            own = {**own, "listeners": f"{own['listeners']},{controller}://127.0.0.1:{controller_port}"}
        else:
            controller_port = int(found[1])
    else:
        settings |= {
            "listeners": listeners,
            "advertised.listeners": listeners,
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        }
    if contents.has_dynamic_quorum:
        settings["controller.quorum.bootstrap.servers"] = f"127.0.0.1:{controller_port}"
    else:
        settings["controller.quorum.voters"] = f"{node_id}@127.0.0.1:{controller_port}"
    settings |= {
        # One broker cannot hold three replicas of Kafka's internal topics.
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
    }
    # Apache Kafka would only warn about those of Ottla.
    settings |= {name: value for name, value in own.items() if not name.startswith("ottla.")}
    return settings | {"node.id": str(node_id), "log.dirs": str(directory.absolute())}


def _own_settings(config_file: Path | None, clients: Path | None) -> dict[str, str]:
    """Return what the node was started with."""
    from ottla.model.properties import MalformedProperties, iter_properties

    own: dict[str, str] = {}
    if clients is not None:
        from ottla.cli.nodes.secure import prepare

        own |= prepare(clients, None, is_formatted=True).settings(None, None)
    if config_file is not None:
        try:
            own |= {item.key: item.value for item in iter_properties(config_file.read_bytes())}
        except OSError as error:
            raise Failure(f"cannot read {config_file}: {error.strerror}") from error
        except MalformedProperties as error:
            raise Failure(f"cannot use {config_file}: {error}") from error
    return own


def _check_security(directory: Path, contents: "Contents", settings: Mapping[str, str]) -> None:
    """Refuse to write a configuration by which Apache Kafka would let everybody do everything."""
    from ottla.broker.lifecycle.lost_security import find_lost
    from ottla.metadata.configs.errors import InvalidConfig, UnusableConfigs
    from ottla.metadata.configs.load import load_node_config

    try:
        lost = find_lost(load_node_config(b"", settings).configs, contents.rules, contents.users)
    except (InvalidConfig, UnusableConfigs) as error:
        raise Failure(str(error)) from error
    if lost is not None:
        raise Failure(
            f"the metadata in {directory} has {lost}, so anybody could do everything in Apache Kafka: name "
            "what the node was started with (--config FILE, or --clients for `ottla up --secure`), or add "
            "--insecure if everybody is to be served"
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
