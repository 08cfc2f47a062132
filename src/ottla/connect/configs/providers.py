"""Config providers: values that are kept elsewhere, as `${file:/run/secrets/db.properties:password}`.

Their names, classes and parameters are Kafka's. A variable that no provider knows stays as it is.
What is kept in topics is the variable. `Secrets` hides the value in all that a worker says.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, Protocol

from ottla.client.properties import InvalidProperty
from ottla.connect.configs.secrets import Secrets
from ottla.connect.errors import ConnectError
from ottla.model.properties import MalformedProperties, iter_text_properties

PROVIDERS: Final = "config.providers"
_PACKAGE: Final = "org.apache.kafka.common.config.provider."
_START: Final = "${"


class ConfigProvider(Protocol):
    """Finds values. Raises ConnectError."""

    def find(self, path: str, key: str) -> str | None:
        """Return the value of a key."""


class _AllowedPaths:
    """The files and directories that a provider may read."""

    def __init__(self, name: str, parameters: Mapping[str, str]) -> None:
        text = parameters.get("allowed.paths", "").strip()
        self._allowed: list[Path] | None = None
        if text:
            self._allowed = [_existing(name, Path(part.strip())) for part in text.split(",")]

    def find(self, path: str) -> Path | None:
        """Return a path that may be read.

        Deviation: Kafka does not follow links before it compares. Here a link in an allowed directory does
        not lead out of it.
        """
        found = Path(path).resolve()
        if self._allowed is not None and not any(found.is_relative_to(item) for item in self._allowed):
            return None
        return found


def _existing(name: str, path: Path) -> Path:
    if not path.is_absolute() or not path.exists():
        raise InvalidProperty(
            f"{PROVIDERS}.{name}.param.allowed.paths has {path}: the path should be absolute and exist"
        )
    return path.resolve()


class FileConfigProvider:
    """Keys of properties files."""

    def __init__(self, name: str, parameters: Mapping[str, str]) -> None:
        self._allowed = _AllowedPaths(name, parameters)

    def find(self, path: str, key: str) -> str | None:
        """Return the value of a key in a file."""
        allowed = self._allowed.find(path) if path else None
        if allowed is None:
            return None
        try:
            text = allowed.read_text("utf-8")
            return {item.key: item.value for item in iter_text_properties(text)}.get(key)
        except (OSError, UnicodeDecodeError, MalformedProperties) as error:
            # The reason may quote the file.
            raise ConnectError(f"Could not read properties from file {path}") from error


class DirectoryConfigProvider:
    """Files of a directory: each file is a value, and its name the key."""

    def __init__(self, name: str, parameters: Mapping[str, str]) -> None:
        self._allowed = _AllowedPaths(name, parameters)

    def find(self, path: str, key: str) -> str | None:
        """Return the content of a file. A key is the name of a file, and not a path."""
        directory = self._allowed.find(path) if path else None
        if directory is None or not key or "/" in key or not (directory / key).is_file():
            return None
        file = self._allowed.find(str(directory / key))
        try:
            return None if file is None else file.read_bytes().decode("utf-8", "replace")
        except OSError as error:
            raise ConnectError(f"Could not read file {directory / key} for property {key}") from error


class EnvVarConfigProvider:
    """Variables of the environment."""

    def __init__(self, name: str, parameters: Mapping[str, str]) -> None:
        text = parameters.get("allowlist.pattern", ".*")
        try:
            self._pattern = re.compile(text)
        except re.error as error:
            raise InvalidProperty(
                f"{PROVIDERS}.{name}.param.allowlist.pattern is {text!r}: it is not a regular expression"
            ) from error

    def find(self, path: str, key: str) -> str | None:
        """Return the value of a variable."""
        if path:
            raise ConnectError(f"Path is not supported for EnvVarConfigProvider, invalid value '{path}'")
        return os.environ.get(key) if self._pattern.fullmatch(key) else None


_CLASSES: Final[Mapping[str, Callable[[str, Mapping[str, str]], ConfigProvider]]] = {
    f"{_PACKAGE}FileConfigProvider": FileConfigProvider,
    f"{_PACKAGE}DirectoryConfigProvider": DirectoryConfigProvider,
    f"{_PACKAGE}EnvVarConfigProvider": EnvVarConfigProvider,
}


class ConfigProviders:
    """All providers of a worker, by name."""

    def __init__(self, providers: Mapping[str, ConfigProvider], secrets: Secrets) -> None:
        self._providers = providers
        self._secrets = secrets

    def resolve(self, config: Mapping[str, str]) -> dict[str, str]:
        """Return a configuration with its values instead of variables. Raises ConnectError."""
        return {key: self._resolved(text) for key, text in config.items()}

    def _resolved(self, text: str) -> str:
        parts: list[str] = []
        position = 0
        for start, end in _variables(text):
            parts += text[position:start], self._value(text[start:end])
            position = end
        return "".join(parts) + text[position:]

    def _value(self, variable: str) -> str:
        name, _, rest = variable[len(_START) : -1].partition(":")
        path, colon, key = rest.partition(":")
        provider = self._providers.get(name)
        value = None if provider is None else provider.find(*((path, key) if colon else ("", rest)))
        if value is None:
            return variable
        self._secrets.add(value, variable)
        return value


def _variables(text: str) -> Iterator[tuple[int, int]]:
    """Find where variables begin and end, as Kafka's expression does.

    It takes time in proportion to the text. Expressions took minutes for thousands of colons, or of
    beginnings without an end.
    """
    position = 0
    while (start := text.find(_START, position)) >= 0 and (end := text.find("}", start)) >= 0:
        if text.find(":", start, end) >= 0:
            yield start, end + 1
        position = end + 1


def read_providers(properties: Mapping[str, str], secrets: Secrets) -> ConfigProviders:
    """Return the providers that properties of a worker name. Raises InvalidProperty."""
    named = [name.strip() for name in properties.get(PROVIDERS, "").split(",") if name.strip()]
    return ConfigProviders({name: _provider(name, properties) for name in named}, secrets)


def _provider(name: str, properties: Mapping[str, str]) -> ConfigProvider:
    prefix = f"{PROVIDERS}.{name}."
    given = properties.get(f"{prefix}class")
    if given is None:
        raise InvalidProperty(f"{PROVIDERS} names {name!r}, but {prefix}class is missing")
    make = _CLASSES.get(given.strip())
    if make is None:
        known = ", ".join(_CLASSES)
        raise InvalidProperty(
            f"{prefix}class is {given!r}: there is no such provider here, use one of {known}"
        )
    start = f"{prefix}param."
    return make(
        name, {key.removeprefix(start): text for key, text in properties.items() if key.startswith(start)}
    )


def with_variables(
    task: Mapping[str, str], given: Mapping[str, str], resolved: Mapping[str, str]
) -> dict[str, str]:
    """Return the configuration of a task with the variables of its connector: it is written to a topic."""
    return {
        key: given[key] if key in given and text == resolved.get(key) else text for key, text in task.items()
    }
