"""The directories of a node, as its configuration names them."""

from pathlib import Path

from ottla.metadata.configs.node import NodeConfig


def data_directories(config: NodeConfig) -> list[str]:
    """Return the directories of a node, that of the metadata first, as absolute paths."""
    paths = [str(Path(path).absolute()) for path in config.data_directories]
    metadata = str(Path(config.metadata_directory).absolute())
    return [metadata, *[path for path in paths if path != metadata]]


def cordoned_directories(config: NodeConfig) -> frozenset[str]:
    """Return the directories that are to get no new logs, as absolute paths."""
    named = config.cordoned_log_dirs
    return frozenset(
        data_directories(config) if "*" in named else (str(Path(path).absolute()) for path in named)
    )
