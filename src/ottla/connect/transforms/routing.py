"""Transformations that change where a record goes, or whether it goes anywhere."""

import datetime
import re
from dataclasses import replace
from typing import Final

from ottla.connect.configs.keys import Key, Kind, a_pattern
from ottla.connect.data.record import Record
from ottla.connect.data.schema import from_ms
from ottla.connect.errors import DataError
from ottla.connect.plugins import Config, Plugin, PluginKind
from ottla.connect.transforms.java_dates import format_date
from ottla.model.patterns import compile_pattern

_PACKAGE: Final = "org.apache.kafka.connect.transforms."
_JAVA_GROUP: Final = re.compile(r"\\(.)|\$(\d|\{\w+\})")


class RegexRouter:
    """Renames the topic if its whole name matches."""

    def __init__(self, config: Config) -> None:
        self._pattern = compile_pattern(config["regex"])
        self._replacement = config["replacement"]

    def apply(self, record: Record) -> Record:
        """Return the record with its new topic."""
        found = self._pattern.fullmatch(record.topic)
        if found is None:
            return record

        def part(match: re.Match[str]) -> str:
            escaped, group = match.groups()
            if escaped is not None:
                return escaped
            key = group.strip("{}")
            return found[int(key) if key.isdigit() else key] or ""

        try:
            return replace(record, topic=_JAVA_GROUP.sub(part, self._replacement))
        except IndexError as error:
            raise DataError(
                f"the replacement {self._replacement!r} names a group that the regex lacks"
            ) from error


class TimestampRouter:
    """Renames the topic by the time of the record."""

    def __init__(self, config: Config) -> None:
        self._topic_format = config.get("topic.format", "${topic}-${timestamp}")
        self._time_format = config.get("timestamp.format", "yyyyMMdd")

    def apply(self, record: Record) -> Record:
        """Return the record with its new topic."""
        if record.timestamp_ms is None:
            raise DataError(f"Timestamp missing on record of topic {record.topic}")
        when: datetime.datetime = from_ms(record.timestamp_ms)
        text = format_date(self._time_format, when)
        topic = self._topic_format.replace("${topic}", record.topic).replace("${timestamp}", text)
        return replace(record, topic=topic)


class Filter:
    """Drops each record. It is used with a predicate."""

    def __init__(self, _config: Config) -> None:
        pass

    def apply(self, _record: Record) -> None:
        """Drop the record."""
        return


PLUGINS: Final = (
    Plugin(
        f"{_PACKAGE}RegexRouter",
        PluginKind.TRANSFORMATION,
        RegexRouter,
        (
            Key(
                "regex",
                Kind.STRING,
                "Regular expression to use for matching, in RE2's syntax.",
                check=a_pattern,
            ),
            Key("replacement", Kind.STRING, "Replacement string."),
        ),
    ),
    Plugin(
        f"{_PACKAGE}TimestampRouter",
        PluginKind.TRANSFORMATION,
        TimestampRouter,
        (
            Key(
                "topic.format",
                Kind.STRING,
                "The new name, in which ${topic} and ${timestamp} are replaced.",
                "${topic}-${timestamp}",
            ),
            Key("timestamp.format", Kind.STRING, "The format of the time, as Java writes it.", "yyyyMMdd"),
        ),
    ),
    Plugin(f"{_PACKAGE}Filter", PluginKind.TRANSFORMATION, Filter),
)
