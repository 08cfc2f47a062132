"""Who may use a satellite: names and passwords from a file, sent with HTTP's Basic scheme.

The file has a line for each user, `name: password`. A password may be followed by a comma and roles, as in
the files that Confluent's registry reads; roles are ignored.
"""

import base64
import binascii
import hmac
import os
import stat
from pathlib import Path
from typing import Final, NamedTuple

from ottla.satellite.settings import UnusableSettings

# Readable or changeable by all users of the machine, or changeable by a group.
_TOO_OPEN: Final = stat.S_IRWXO | stat.S_IWGRP


class Credentials(NamedTuple):
    """Who a client says it is."""

    name: str
    password: str


def read_credentials(header: str) -> Credentials | None:
    """Read the header `Authorization`. None: it has no name and password."""
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, colon, password = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return Credentials(name, password) if colon else None


class Users:
    """Names and passwords."""

    def __init__(self, passwords: dict[str, str]) -> None:
        self._passwords = passwords

    @classmethod
    def read(cls, path: Path) -> "Users":
        """Read a file of users. Raises UnusableSettings."""
        passwords: dict[str, str] = {}
        try:
            with path.open() as file:
                mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
                lines = file.read().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UnusableSettings(f"the file of users {path} cannot be read: {error}") from error
        if mode & _TOO_OPEN:
            raise UnusableSettings(
                f"the file of users {path} is open to other users of this machine (mode {mode:04o}): "
                f"run chmod 600 {path}"
            )
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            name, colon, rest = line.partition(":")
            password = rest.split(",")[0].strip()
            if not colon or not name.strip() or not password:
                raise UnusableSettings(f"line {number} of {path} is not `name: password`")
            passwords[name.strip()] = password
        if not passwords:
            raise UnusableSettings(f"the file of users {path} names nobody")
        return cls(passwords)

    def knows(self, given: Credentials) -> bool:
        """Say whether a password is right."""
        expected = self._passwords.get(given.name)
        # Compare also for names that do not exist, so that the time tells nothing.
        is_right = hmac.compare_digest((expected or "\0").encode(), given.password.encode())
        return is_right and expected is not None
