"""Subjects and the contexts they are in.

A subject of another context than the default one is written `:.context:subject`. `:.context:` alone stands
for the context. Each context has ids of its own.
"""

from typing import Final, NamedTuple

DEFAULT_CONTEXT: Final = "."
ALL_CONTEXTS: Final = "*"
WILDCARD: Final = ":*:"
GLOBAL_CONTEXT: Final = ".__GLOBAL"
_REFUSED: Final = ("__GLOBAL", "__EMPTY")


class Subject(NamedTuple):
    """A subject in its context. The name is empty for a context itself."""

    context: str
    name: str

    @classmethod
    def parse(cls, text: str) -> "Subject":
        """Take a qualified subject apart."""
        if text.startswith(":."):
            context, _, name = text[1:].partition(":")
            return cls(context, name)
        if text.startswith(WILDCARD):
            return cls(ALL_CONTEXTS, text.removeprefix(WILDCARD))
        return cls(DEFAULT_CONTEXT, text)

    def __str__(self) -> str:
        return self.prefix + self.name

    @property
    def prefix(self) -> str:
        """How subjects of this context begin."""
        return "" if self.context == DEFAULT_CONTEXT else f":{self.context}:"

    @property
    def is_context(self) -> bool:
        """Say whether this is a context and no subject in it."""
        return not self.name

    @property
    def is_default_context(self) -> bool:
        """Say whether this stands for everything that has no settings of its own."""
        return self.context == DEFAULT_CONTEXT and not self.name

    def beside(self, other: str) -> "Subject":
        """Return a subject as it is meant here: without a context it is in this one."""
        parsed = Subject.parse(other)
        return Subject(self.context, parsed.name) if parsed.context == DEFAULT_CONTEXT else parsed


def normalize(text: str) -> str:
    """Return how a subject is stored."""
    return str(Subject.parse(text))


def context_of(subject: str) -> str:
    """Return the context of a subject."""
    return Subject.parse(subject).context


def prefix_of(subject: str) -> str:
    """Return the context of a subject as it is written before the name."""
    return Subject.parse(subject).prefix


def context_prefix(context: str) -> str:
    """Return what stands before the subjects of a context that a path names."""
    bare = context.strip(":")
    if not bare.startswith("."):
        bare = f".{bare}"
    return "" if bare == DEFAULT_CONTEXT else f":{bare}:"


def is_valid(text: str, *, allows_context: bool = False) -> bool:
    """Say whether a subject may be used for new things."""
    subject = Subject.parse(text)
    if subject.is_context:
        return allows_context or subject.context != DEFAULT_CONTEXT
    has_control = any(ord(letter) < 32 or ord(letter) == 127 for letter in text)
    return subject.name not in _REFUSED and not has_control
