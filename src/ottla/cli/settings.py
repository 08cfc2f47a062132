"""Options that say how a node is configured, shared by the commands that need a node's configuration."""

from collections.abc import Callable, Mapping, Set
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from ottla.cli.failure import Failure
from ottla.cli.profiles import parse_assignments

if TYPE_CHECKING:
    from ottla.metadata.configs.load import LoadedConfig
    from ottla.metadata.configs.node import NodeConfig

F = TypeVar("F", bound=Callable[..., Any])


DEFAULT_DATA_DIRECTORY: Final = "ottla-data"


def settings_options(command: F) -> F:
    """Add the options that `load_settings` takes."""
    for option in (
        click.option(
            "--set",
            "assignments",
            metavar="KEY=VALUE",
            multiple=True,
            help="Set a config. Can be repeated. Overrides the file.",
        ),
        click.option(
            "--config",
            "config_file",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="A server.properties file, as for Apache Kafka.",
        ),
        click.option(
            "--data",
            "data_directory",
            type=click.Path(file_okay=False, path_type=Path),
            help="The data directory of the node. Default: log.dirs in the file, otherwise ./ottla-data.",
        ),
    ):
        command = option(command)
    return command


def load_settings(
    config_file: Path | None,
    assignments: tuple[str, ...],
    data_directory: Path | None,
    defaults: Mapping[str, str] = MappingProxyType({}),
) -> "LoadedConfig":
    """Put a node's configuration together: the file, what was set on top, and where the data is.

    `defaults` hold where neither says anything.
    """
    from ottla.metadata.configs.errors import InvalidConfig, UnusableConfigs
    from ottla.metadata.configs.load import is_secret, load_node_config
    from ottla.model.properties import iter_properties

    given = parse_assignments(assignments, "--set")
    set_here = tuple(given)
    if data_directory is not None:
        given["log.dirs"] = str(data_directory)
    try:
        properties = b"" if config_file is None else config_file.read_bytes()

        in_file = {item.key for item in iter_properties(properties)}
        unset = {name: text for name, text in defaults.items() if name not in in_file}

        def load(assumed: Mapping[str, str]) -> "LoadedConfig":
            return load_node_config(properties, {**unset, **assumed, **given}, origin=str(config_file or ""))

        loaded = load({})
        if not {"log.dirs", "log.dir"} & loaded.configs.layers.static.keys():
            # Deviation: Kafka's default is below /tmp, which is no place for anybody's data.
            given["log.dirs"] = DEFAULT_DATA_DIRECTORY
            loaded = load({})
        named = {*given, *(item.key for item in iter_properties(properties))}
        if assumed := _told_by_directories(loaded.config, named):
            loaded = load(assumed)
        if shown := [name for name in set_here if is_secret(name)]:
            warning = (
                f"command line: everybody on this machine can see {', '.join(shown)} in the list of "
                "processes; put it in a file, and name that with --config"
            )
            loaded = loaded._replace(warnings=(*loaded.warnings, warning))
    except OSError as error:
        raise Failure(f"cannot read {config_file}: {error.strerror}") from error
    except (InvalidConfig, UnusableConfigs) as error:
        raise Failure(str(error)) from error
    return loaded


def _told_by_directories(config: "NodeConfig", named: Set[str]) -> dict[str, str]:
    """Return what the data directories say of their node, where nobody says it otherwise.

    Apache Kafka counts nodes from 1, Ottla from 0; and the voters of a static quorum are in Kafka's config
    alone. A directory knows both, so it opens without that config. Only a sole voter is taken for one.
    """
    told: dict[str, str] = {}
    node_id = config.node_id
    if not {"node.id", "broker.id"} & named and (found := _find_node_id(config)) is not None:
        node_id = found
        told["node.id"] = str(node_id)
    voters_are_named = {"controller.quorum.voters", "controller.quorum.bootstrap.servers"} & named
    if not voters_are_named and _find_voters(config) == (node_id,):
        from ottla.broker.lifecycle.format_options import CONTROLLER_PORT
        from ottla.metadata.configs.load import ALONE_VALUES

        told["controller.quorum.voters"] = f"{node_id}@127.0.0.1:{CONTROLLER_PORT}"
        told |= {name: value for name, value in ALONE_VALUES.items() if name not in named}
    return told


def _find_node_id(config: "NodeConfig") -> int | None:
    """Return whose the directories are. What is wrong with one is reported when it is opened."""
    from ottla.storage.file_errors import CorruptFile
    from ottla.storage.log_dirs.meta_properties import FILE, decode_meta_properties

    for directory in (config.metadata_directory, *config.data_directories):
        with suppress(OSError, CorruptFile):
            node_id = decode_meta_properties(Path(directory, FILE).read_bytes()).node_id
            if node_id is not None:
                return node_id
    return None


def _find_voters(config: "NodeConfig") -> tuple[int, ...] | None:
    """Return the voters of a static quorum."""
    from ottla.metadata.errors import MetadataError
    from ottla.quorum.quorum_state import FILE, find_static_voters
    from ottla.storage.names import METADATA_PARTITION

    with suppress(OSError, MetadataError):
        return find_static_voters(Path(config.metadata_directory, str(METADATA_PARTITION), FILE).read_bytes())
    return None
