"""Ranges of protocol versions, written as Kafka writes them: `0-3`, `4+`, `7`, `none`."""

from typing import NamedTuple

VERSION_MAX = 32767


class Versions(NamedTuple):
    """All versions from `first` to `last`, both included. Empty when `first` is above `last`."""

    first: int
    last: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last

    def __str__(self) -> str:
        if self.first > self.last:
            return "none"
        if self.first == self.last:
            return str(self.first)
        return f"{self.first}+" if self.last == VERSION_MAX else f"{self.first}-{self.last}"

    @property
    def all(self) -> range:
        """Each version of the range, in order."""
        return range(self.first, self.last + 1)


NO_VERSIONS = Versions(0, -1)


def parse_versions(text: str) -> Versions:
    """Read `0-3`, `4+`, `7` or `none`."""
    if text == "none":
        return NO_VERSIONS
    if text.endswith("+"):
        return Versions(int(text[:-1]), VERSION_MAX)
    first, _, last = text.partition("-")
    return Versions(int(first), int(last or first))
