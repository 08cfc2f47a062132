"""Predicates: which records a transformation is meant for."""

from typing import Final

from ottla.connect.configs.keys import Importance, Key, Kind, a_pattern
from ottla.connect.data.record import Record
from ottla.connect.plugins import Config, Plugin, PluginKind
from ottla.model.patterns import compile_pattern

_PACKAGE: Final = "org.apache.kafka.connect.transforms.predicates."


class TopicNameMatches:
    """True for records whose topic matches a pattern as a whole."""

    def __init__(self, config: Config) -> None:
        self._pattern = compile_pattern(config["pattern"])

    def test(self, record: Record) -> bool:
        """Say whether the name matches."""
        return self._pattern.fullmatch(record.topic) is not None


class RecordIsTombstone:
    """True for records without a value."""

    def __init__(self, _config: Config) -> None:
        pass

    def test(self, record: Record) -> bool:
        """Say whether there is no value."""
        return record.value is None


class HasHeaderKey:
    """True for records that have a header."""

    def __init__(self, config: Config) -> None:
        self._name = config["name"]

    def test(self, record: Record) -> bool:
        """Say whether the header is there."""
        return any(header.name == self._name for header in record.headers)


PLUGINS: Final = (
    Plugin(
        f"{_PACKAGE}TopicNameMatches",
        PluginKind.PREDICATE,
        TopicNameMatches,
        (
            Key(
                "pattern",
                Kind.STRING,
                "A regular expression for matching against the name of a record's topic, in RE2's syntax.",
                check=a_pattern,
                importance=Importance.MEDIUM,
            ),
        ),
    ),
    Plugin(f"{_PACKAGE}RecordIsTombstone", PluginKind.PREDICATE, RecordIsTombstone),
    Plugin(
        f"{_PACKAGE}HasHeaderKey",
        PluginKind.PREDICATE,
        HasHeaderKey,
        (Key("name", Kind.STRING, "The name of the header.", importance=Importance.MEDIUM),),
    ),
)
