"""What the seeds of a campaign have met, counted, and what none of them has.

A simulation that never comes to a place says nothing about it. So runs count what they come to (`Met`), a
campaign adds it up, and compares it with what there is (`Expected`): what no seed met is printed, too.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Final, NamedTuple, TypeAlias

Met: TypeAlias = "Counter[tuple[str, str]]"
"""How often what was met: by kind, as in "fault", and by name, as in "kill"."""

WIDTH: Final = 110


class Expected(NamedTuple):
    """What there is of one kind."""

    kind: str
    names: Collection[str]
    cannot: Mapping[str, str]
    """Why no seed can meet it: by name, or by the beginning of names, which a star ends."""
    is_listed: bool = True
    """Whether the table has a line for each name that was met. There may be a thousand."""

    def why_not(self, name: str) -> str | None:
        """Say why no seed can meet something."""
        found = self.cannot.get(name)
        if found is not None:
            return found
        starred = (why for key, why in self.cannot.items() if key.endswith("*") and name.startswith(key[:-1]))
        return next(starred, None)

    def missing(self, met: Met) -> list[str]:
        """Return what no seed has met, though one could."""
        return sorted(name for name in self.names if not met[self.kind, name] and self.why_not(name) is None)

    def contradicted(self, met: Met) -> list[str]:
        """Return what was met, though it is said that it cannot be."""
        return sorted(name for kind, name in met if kind == self.kind and self.why_not(name) is not None)


def table_of(met: Met, expected: Sequence[Expected]) -> Iterator[str]:
    """Give the lines of the table: for each kind what was met, how often, and what no seed has met."""
    for one in expected:
        found = {name: times for (kind, name), times in met.items() if kind == one.kind}
        missing = one.missing(met)
        possible = sum(one.why_not(name) is None for name in one.names)
        yield f"\n{one.kind}: {possible - len(missing)} of {possible}"
        if one.is_listed:
            width = max(map(len, found), default=0)
            yield from (f"  {name:{width}} {times:>9,}" for name, times in sorted(found.items()))
        if missing:
            yield f"  met by no seed ({len(missing)}):"
            yield from wrap(", ".join(missing), WIDTH, initial_indent="    ", subsequent_indent="    ")
        for name in one.contradicted(met):
            yield f"  {name} was met, but {one.why_not(name)}"
