"""Which names a topic may have."""

import re
from typing import Final

TOPIC_NAME_LENGTH_MAX: Final = 249
"""What a file name may have, less the partition's number and a suffix for deleted directories."""

_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")


def find_topic_name_fault(name: str) -> str | None:
    """Say what is wrong with a topic's name, or None if nothing is."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in (".", ".."):
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > TOPIC_NAME_LENGTH_MAX:
        return (
            f"Topic name is invalid: the length of '{name}' is longer than the max allowed length "
            f"{TOPIC_NAME_LENGTH_MAX}"
        )
    if not _LEGAL.fullmatch(name):
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    return None


def collision_key(name: str) -> str:
    """Return what two names have in common when they may not both exist: metrics write a `.` as `_`."""
    return name.replace(".", "_")
