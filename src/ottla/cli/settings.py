"""Options that say how a node is configured, shared by the commands that need a node's configuration."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from ottla.cli.failure import Failure

if TYPE_CHECKING:
    from ottla.metadata.configs.load import LoadedConfig

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
            help="Set a config. May be given several times; wins over the file.",
        ),
        click.option(
            "--config",
            "config_file",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="A server.properties, as Apache Kafka takes it.",
        ),
        click.option(
            "--data",
            "data_directory",
            type=click.Path(file_okay=False, path_type=Path),
            help="Where the node keeps its data. Default: log.dirs of the file, else ./ottla-data.",
        ),
    ):
        command = option(command)
    return command


def load_settings(
    config_file: Path | None, assignments: tuple[str, ...], data_directory: Path | None
) -> "LoadedConfig":
    """Put a node's configuration together: the file, what was set on top, and where the data is."""
    from ottla.metadata.configs.errors import InvalidConfig, UnusableConfigs
    from ottla.metadata.configs.load import load_node_config

    given: dict[str, str] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals:
            raise click.BadParameter(f"{assignment!r} is not KEY=VALUE", param_hint="--set")
        given[key.strip()] = value
    if data_directory is not None:
        given["log.dirs"] = str(data_directory)
    try:
        properties = b"" if config_file is None else config_file.read_bytes()
        loaded = load_node_config(properties, given, origin=str(config_file or ""))
        if not {"log.dirs", "log.dir"} & loaded.configs.layers.static.keys():
            # Deviation: Kafka's default is below /tmp, which is no place for anybody's data.
            given["log.dirs"] = DEFAULT_DATA_DIRECTORY
            loaded = load_node_config(properties, given, origin=str(config_file or ""))
    except OSError as error:
        raise Failure(f"cannot read {config_file}: {error.strerror}") from error
    except (InvalidConfig, UnusableConfigs) as error:
        raise Failure(str(error)) from error
    return loaded
