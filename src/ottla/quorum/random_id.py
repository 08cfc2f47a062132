"""Random ids for topics, directories, clusters and incarnations."""

from typing import Protocol

from ottla.metadata.directory_ids import is_reserved
from ottla.model.uuid import Uuid


class RandomBytes(Protocol):
    """Where chance comes from. `random.Random` is one."""

    def randbytes(self, n: int) -> bytes:
        """Return `n` random bytes."""


def random_id(random: RandomBytes) -> Uuid:
    """Return a random id: a version 4 UUID whose text does not look like an option of a command."""
    while True:
        raw = bytearray(random.randbytes(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        made = Uuid(raw)
        if not is_reserved(made) and not str(made).startswith("-"):
            return made
