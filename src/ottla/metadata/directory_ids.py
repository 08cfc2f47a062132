"""What a replica's directory id may say instead of naming a directory."""

from typing import Final

from ottla.model.uuid import ZERO_UUID, Uuid

MIGRATING: Final = ZERO_UUID
"""The record is older than directory ids: the replica lies in whatever directory its broker has it in."""
UNASSIGNED: Final = Uuid(bytes(15) + b"\x01")
"""The broker has several directories, and is to choose one and tell the controller."""
LOST: Final = Uuid(bytes(15) + b"\x02")
"""The replica lies in a directory that is offline."""

RESERVED_MAX: Final = 100
"""Ids below this have meanings like the ones above, or are kept for such."""


def is_reserved(directory_id: Uuid) -> bool:
    """Say whether an id cannot be the one of a real directory."""
    return int.from_bytes(directory_id) < RESERVED_MAX
