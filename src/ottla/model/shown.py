"""Text that a stranger had a hand in, as it may be shown on a terminal.

Names of groups, clients and users may have any characters. Some of them are orders to a terminal: to move the
cursor, to change the title of the window, to turn the text around. They are shown in escaped form, and so is
everything else that is not to be seen, so that two names that look the same are the same.
"""

import re
from typing import Final

_ORDERS: Final = re.compile(
    # Control characters, marks of direction, separators of lines, invisible ones, and halves of characters.
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
_ORDERS_IN_TEXT: Final = re.compile(_ORDERS.pattern.replace("\x00-\x1f", "\x00-\x08\x0b-\x1f"))


def one_line(text: str) -> str:
    """Return a name, or a line, without anything that a terminal would obey."""
    return text if text.isprintable() else _ORDERS.sub(_escaped, text)


def harmless(text: str) -> str:
    """Return a text of several lines so. Ends of lines and tabs stay."""
    return text if text.isprintable() else _ORDERS_IN_TEXT.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")
