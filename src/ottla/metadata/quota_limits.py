"""Which quota holds for a client.

Of all quotas set, the one for the most specific entity holds: a user with a client id, before a user, before
a client id; and at each step a named one before the default. Entities under one default do not share it: each
has the limit for itself.
"""

from collections.abc import Mapping
from typing import NamedTuple

from ottla.metadata.image import QuotaEntity


class Limit(NamedTuple):
    """A limit, and the user and client id that use it together. An empty text stands for all."""

    value: float
    shared_by: tuple[str, str]


def find_limit(
    limits: Mapping[QuotaEntity, Mapping[str, float]], name: str, user: str, client_id: str
) -> Limit | None:
    """Return the limit of this name that holds for a client, if there is one."""
    for entity, shared_by in _entities(user, client_id):
        value = limits.get(entity, {}).get(name)
        if value is not None:
            return Limit(value, shared_by)
    return None


def _entities(user: str, client_id: str) -> tuple[tuple[QuotaEntity, tuple[str, str]], ...]:
    """Return the entities whose quota may hold, in the order in which they count, and who shares it."""
    both, user_alone, client_alone = (user, client_id), (user, ""), ("", client_id)
    return (
        ((("client-id", client_id), ("user", user)), both),
        ((("client-id", None), ("user", user)), both),
        ((("user", user),), user_alone),
        ((("client-id", client_id), ("user", None)), both),
        ((("client-id", None), ("user", None)), both),
        ((("user", None),), user_alone),
        ((("client-id", client_id),), client_alone),
        ((("client-id", None),), client_alone),
    )
