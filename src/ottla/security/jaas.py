"""Login options in Java's JAAS form, as `sasl.jaas.config` has them.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" user_admin="secret";

The class is not loaded. Only its options are read, and what is written here never reaches an error text.
"""

import re
from typing import Final, NamedTuple

_ENTRY: Final = re.compile(r"\s*([\w.$]+)\s+(required|requisite|sufficient|optional)\b(.*)", re.DOTALL | re.I)
_OPTION: Final = re.compile(
    r"""\s*([\w.\-$]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;"']+))""", re.DOTALL
)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)


class InvalidJaas(ValueError):
    """A text that is no JAAS entry. The message says what is wrong, and nothing of the text itself."""


class JaasEntry(NamedTuple):
    """One login module, and its options."""

    module: str
    options: dict[str, str]

    @property
    def users(self) -> dict[str, str]:
        """The passwords of users, from options such as `user_alice`."""
        return {
            name.removeprefix("user_"): value
            for name, value in self.options.items()
            if name.startswith("user_")
        }


def parse_jaas(text: str) -> JaasEntry:
    """Read the only entry of a text."""
    match = _ENTRY.fullmatch(text)
    if match is None:
        raise InvalidJaas("it does not begin with a login module and `required`")
    module, _, rest = match.groups()
    options: dict[str, str] = {}
    position = 0
    while (option := _OPTION.match(rest, position)) is not None:
        name, double, single, bare = option.groups()
        value = next(one for one in (double, single, bare) if one is not None)
        options[name] = _ESCAPE.sub(r"\1", value) if bare is None else value
        position = option.end()
    if rest[position:].strip() != ";":
        raise InvalidJaas('it does not end with a semicolon after options of the form name="value"')
    return JaasEntry(module, options)
