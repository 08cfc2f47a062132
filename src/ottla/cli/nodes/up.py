"""`ottla up`: run a node until it is stopped."""

import errno
import gc
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ottla.cli.directories.formatting import format_options, read_format_options
from ottla.cli.failure import Failure
from ottla.cli.log_options import log_options
from ottla.cli.output import say
from ottla.cli.profiles import DEFAULT_BOOTSTRAP, parse_assignments
from ottla.cli.settings import DEFAULT_DATA_DIRECTORY, load_settings, settings_options

DEFAULT_PORT: Final = 9092
REGISTRY_URL: Final = "http://127.0.0.1:8081"
_CONNECT_URL: Final = "http://127.0.0.1:8083"

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.cli.nodes.local_cluster import LocalNode
    from ottla.cli.nodes.secure import SecureFiles
    from ottla.metadata.configs.load import LoadedConfig

DEFAULT_DIRECTORY: Final = "ottla-clients"
_START_OBJECTS: Final = 100_000
_HINTS: Final = """
Ottla is running on {address}. Press Ctrl-C to stop it. In another terminal, try:

  echo hello | {command} produce greetings{where}     write a record
  {command} consume greetings{where}                  read it
  {command} topic list{where}                         list the topics
  {command} --help                             list all commands

Any Kafka client works as well, with {address} as its bootstrap.servers."""


@click.command()
@settings_options
@click.option("--host", help="The address to listen on. Default: 127.0.0.1.")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="The port to listen on, 0 for a free one. Default: 9092."
)
@log_options
@click.option(
    "--nodes",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    help="The number of nodes to run on this machine, on ports from --port on. Their data is in the "
    "directories node-1, node-2 and so on below --data.",
)
@click.option("--registry", "with_registry", is_flag=True, help="Also run a schema registry, on port 8081.")
@click.option(
    "--connect", "with_connect", is_flag=True, help="Also run a worker of connectors, on port 8083."
)
@click.option("--console", "with_console", is_flag=True, help="Also run the console, on port 8088.")
@click.option("--hints", is_flag=True, help="Print example commands on stderr when the node is ready.")
@click.option(
    "--insecure",
    is_flag=True,
    help="Listen on other addresses than loopback without authentication: any client that reaches the port "
    "can do everything.",
)
@click.option(
    "--secure",
    is_flag=True,
    help="Ask for a login over TLS. The first start makes certificates and a user `admin` with a random "
    "password, and writes the settings of clients to the directory of --clients.",
)
@click.option(
    "--clients",
    "clients_directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(DEFAULT_DIRECTORY),
    show_default=True,
    help="With --secure: where secrets and the settings of clients are kept.",
)
@click.option(
    "--join",
    metavar="HOST:PORT|TOKEN",
    help="At the first start: join the cluster that this node belongs to, as a broker. With --secure: the "
    "file of a token. See `ottla cluster token`.",
)
@click.option(
    "--format-empty",
    is_flag=True,
    help="Format an empty log directory even if a log directory of this node is missing.",
)
@format_options
def up(
    data_directory: Path | None,
    config_file: Path | None,
    assignments: tuple[str, ...],
    host: str | None,
    port: int | None,
    log_format: str,
    log_level: str,
    nodes: int,
    with_registry: bool,
    with_connect: bool,
    with_console: bool,
    hints: bool,
    insecure: bool,
    secure: bool,
    clients_directory: Path,
    join: str | None,
    format_empty: bool,
    **format_given: Any,
) -> None:
    """Run a node (a broker and its controller), or several, until SIGTERM or SIGINT.

    Prints one line, `ready HOST:PORT`, when it accepts clients; with --nodes, when all of them do, with the
    addresses of all. An empty data directory is formatted
    first, as `ottla storage format` would do it with the same options.
    """
    check_satellites(with_registry or with_connect or with_console, is_plain=nodes == 1 and not secure)
    _check_no_secret_shows(format_given["add_scram"])
    if nodes > 1:
        _check_nodes(join, is_contradictory=secure and insecure)
        _run_cluster(
            nodes,
            host or "127.0.0.1",
            DEFAULT_PORT if port is None else port,
            Path(DEFAULT_DATA_DIRECTORY) if data_directory is None else data_directory,
            (config_file, assignments),
            ["--insecure"] if insecure else [],
            (log_format, log_level),
            hints,
            clients_directory if secure else None,
        )
        return
    thresholds = gc.get_threshold()
    # Nearly all that a start makes stays, so the garbage collector would look at it again and again for
    # nothing.
    gc.set_threshold(_START_OBJECTS)
    from ottla.broker.lifecycle.process import NodeFailure, NodeOptions, run_node
    from ottla.cli.nodes import joining
    from ottla.runtime.log_lines import set_up_logging

    satellites: list[Any] = []

    def ready(address: str) -> None:
        gc.set_threshold(*thresholds)
        if files is not None:
            files.write_client_files(address)
        _tell_ready(address, hints)
        if files is not None and files.is_new:
            say(secure_files.HINTS.format(address=address, directory=files.directory), err=True)
        schemas = ("--registry", REGISTRY_URL) if with_registry else ()
        workers = ("--connect", _CONNECT_URL) if with_connect else ()
        wanted = (
            ("registry",) * with_registry,
            ("connect",) * with_connect,
            ("console", *schemas, *workers) * with_console,
        )
        satellites.extend(start_satellite(*words, "--bootstrap", address) for words in wanted if words)

    set_up_logging(log_format == "json", log_level.upper())
    loaded = load_settings(config_file, assignments, data_directory)
    format_chosen = read_format_options(format_given)
    files = None
    is_formatted = _is_formatted(loaded)
    joined = None if secure else joining.find_or_join(join, data_directory, config_file, is_formatted)
    if joined is not None:
        loaded = load_settings(config_file, assignments, data_directory, joined.settings)
        format_chosen = format_chosen._replace(cluster_id=joined.cluster_id)
    if not is_formatted and not secure:
        joining.check_founds_nothing(loaded.configs.layers.static, format_chosen)
    if secure:
        from ottla.cli.nodes import secure as secure_files

        if insecure:
            raise Failure("--secure and --insecure exclude each other: choose one")
        token = None if join is None else Path(join)
        files = secure_files.prepare(clients_directory, host, is_formatted, token)
        loaded = load_settings(config_file, assignments, data_directory, files.settings(host, port))
        format_chosen = files.format_options(format_chosen)
    try:
        run_node(
            loaded,
            NodeOptions(
                host=host,
                port=port,
                is_insecure=insecure,
                formats_empty=format_empty,
                format=format_chosen,
            ),
            ready,
        )
    except NodeFailure as error:
        raise Failure(str(error) + next_step(error)) from error
    finally:
        stop_satellites(satellites)


def check_satellites(is_wanted: bool, *, is_plain: bool) -> None:
    """Refuse satellites where they would have to log in, or to know several nodes."""
    if is_wanted and not is_plain:
        raise click.UsageError(
            "--registry, --connect and --console are for one node without a login: start `ottla registry`, "
            "`ottla connect` and `ottla console` yourself, with the addresses of the nodes and the settings "
            "of a client"
        )


def _check_no_secret_shows(credentials: "Sequence[str]") -> None:
    """Refuse passwords that all users of this machine could read while the node runs."""
    if not credentials:
        return
    from ottla.broker.lifecycle.format_options import shows_secret

    if any(map(shows_secret, credentials)):
        raise click.UsageError(
            "--add-scram would show the password in the list of processes for as long as the node runs: "
            "write password-file=FILE in its place, or format the directory first with `ottla storage format`"
        )


def start_satellite(*arguments: str) -> Any:
    """Start another command of Ottla beside this one. It prints its own line when it is ready."""
    import subprocess

    return subprocess.Popen([sys.executable, "-m", "ottla", *arguments])  # noqa: S603 - it is ourselves


def _check_nodes(join: str | None, *, is_contradictory: bool) -> None:
    """Refuse options that several nodes cannot have."""
    if join is not None:
        raise click.UsageError("--join is for one node: start it alone")
    if is_contradictory:
        raise Failure("--secure and --insecure exclude each other: choose one")


def _run_cluster(
    count: int,
    host: str,
    port: int,
    directory: Path,
    given: tuple[Path | None, tuple[str, ...]],
    options: list[str],
    output: tuple[str, str],
    hints: bool,
    clients_directory: Path | None,
) -> None:
    from ottla.cli.nodes import secure
    from ottla.cli.nodes.local_cluster import (
        NodeOutput,
        check_unused,
        find_cluster_id,
        plan_nodes,
        read_shared_settings,
        run_nodes,
        write_properties,
    )

    is_secure = clients_directory is not None
    nodes = plan_nodes(count, port, directory, secure.controller_port if is_secure else None)
    check_unused(nodes)
    config_file, assignments = given
    settings = {**read_shared_settings(config_file), **parse_assignments(assignments, "--set")}
    files = None
    try:
        cluster_id = find_cluster_id(nodes)
        if clients_directory is None:
            write_properties(nodes, host, settings)
        else:
            is_formatted = any(node.data.exists() for node in nodes)
            files = secure.prepare(clients_directory, host, is_formatted)
            write_properties(nodes, host, settings, partial(_secure_settings, files, host))
            _format_secure(nodes, files, cluster_id)
    except OSError as error:
        raise Failure(f"cannot write to {directory}: {error.strerror}") from error
    controllers = [f"{host}:{node.controller_port}" for node in nodes if node.controller_port is not None]
    say(f"starting {count} nodes; controllers listen on {', '.join(controllers)}", err=True)
    addresses = ",".join(f"{host}:{node.port}" for node in nodes)

    def ready() -> None:
        if files is not None:
            files.write_client_files(addresses)
        _tell_ready(addresses, hints)
        if files is not None and files.is_new:
            say(secure.HINTS.format(address=addresses, directory=files.directory), err=True)

    run_nodes(nodes, cluster_id, options, NodeOutput(*output), ready)


def _secure_settings(files: "SecureFiles", host: str, node: "LocalNode") -> dict[str, str]:
    """Return what a secure node has for itself. It votes if it has a port for controllers."""
    is_controller = node.controller_port is not None
    roles = {"process.roles": "broker,controller" if is_controller else "broker"}
    return {**files.settings(host, node.port, is_controller=is_controller), **roles}


def _format_secure(nodes: "Sequence[LocalNode]", files: "SecureFiles", cluster_id: str) -> None:
    """Format new directories here: the password must not be an argument of the processes of the nodes."""
    from ottla.broker.lifecycle.format_options import FormatFailure, FormatOptions
    from ottla.broker.lifecycle.formatting import format_node

    for node in nodes:
        credentials = (files.scram_option,) if node.controller_port is not None else ()
        options = FormatOptions(cluster_id=cluster_id, scram_credentials=credentials)
        loaded = load_settings(node.config_file, (), None)
        try:
            format_node(loaded.config, options, ignores_formatted=True)
        except FormatFailure as error:
            raise Failure(str(error)) from error


def stop_satellites(satellites: list[Any]) -> None:
    """Stop what was started beside this command."""
    for satellite in satellites:
        satellite.terminate()
        satellite.wait()


def _is_formatted(loaded: "LoadedConfig") -> bool:
    from ottla.broker.logs.data_directories import data_directories
    from ottla.storage.log_dirs.meta_properties import FILE

    return Path(data_directories(loaded.config)[0], FILE).exists()


def next_step(error: BaseException) -> str:
    """Return what to do about an error, as the rest of its sentence, if that is known."""
    causes = [error]
    while (cause := causes[-1].__cause__) is not None:
        causes.append(cause)
    for cause in causes:
        if isinstance(cause, PermissionError):
            return "; get the permission, or choose another directory with --data or another port with --port"
        if isinstance(cause, OSError) and cause.errno == errno.EADDRINUSE:
            return "; stop the process that uses the port, or choose another with --port"
    return ""


def _tell_ready(address: str, hints: bool) -> None:
    say(f"ready {address}")
    if hints:
        where = "" if address == DEFAULT_BOOTSTRAP else f" --bootstrap {address}"
        say(_HINTS.format(command=Path(sys.argv[0]), address=address, where=where), err=True)
