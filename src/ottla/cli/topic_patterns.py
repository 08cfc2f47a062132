"""Topics by patterns, as kcat has them: a name that begins with `^` is a regular expression.

It matches names that begin so: `^orders` finds `orders` and `orders.eu`. With `$` at its end it has to match
all of the name.
"""

import re
from collections.abc import Collection, Sequence

import click


def check_patterns(topics: Sequence[str]) -> None:
    """Raise for a pattern that is none."""
    # The help of a command needs no expressions.
    from ottla.model.patterns import InvalidPattern, compile_pattern

    for topic in topics:
        if topic.startswith("^"):
            try:
                compile_pattern(_of_whole_name(topic))
            except InvalidPattern as error:
                raise click.BadParameter(
                    f"{topic!r} is not a valid regular expression: {error}", param_hint="TOPICS"
                ) from None


def has_patterns(topics: Sequence[str]) -> bool:
    """Say whether any of them is a pattern."""
    return any(topic.startswith("^") for topic in topics)


def as_one_pattern(topics: Sequence[str]) -> str:
    """Return a regular expression that whole names must match to be one of these."""
    return "|".join(_of_whole_name(topic) if topic.startswith("^") else re.escape(topic) for topic in topics)


def matching(topics: Sequence[str], names: Collection[str]) -> list[str]:
    """Return the names that match, in order, with those that were named whether they are there or not."""
    from ottla.model.patterns import compile_pattern

    compiled = compile_pattern(as_one_pattern(topics))
    named = {topic for topic in topics if not topic.startswith("^")}
    return sorted({name for name in names if compiled.fullmatch(name)} | named)


def _of_whole_name(pattern: str) -> str:
    body = pattern[1:]
    if body.endswith("$") and not body.endswith("\\$"):
        return f"(?:{body[:-1]})"
    return f"(?:{body}).*"
