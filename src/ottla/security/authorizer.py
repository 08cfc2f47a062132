"""Who may do what: asked by handlers, and by whatever remembers an answer."""

from collections.abc import Hashable
from typing import Protocol

from ottla.security.principal import Principal
from ottla.security.rights import Right


class Authorizer(Protocol):
    """The rules of the cluster."""

    version: int
    """Changes with the rules. What was decided or remembered in an older version may not hold any more."""

    def allows(self, principal: Principal, host: str, right: Right, name: str) -> bool:
        """Say whether a client on `host` may use a right on the resource of this name."""

    def audience(self, principal: Principal, host: str) -> Hashable:
        """Return the same only for clients that are allowed the same, now and then.

        An answer that depends on what its reader may see can be remembered for its audience.
        """


class AllowsEverything:
    """The rules of a cluster without access rules. Implements `Authorizer`."""

    version = 0

    def allows(self, principal: Principal, host: str, right: Right, name: str) -> bool:  # noqa: ARG002
        """Say yes."""
        return True

    def audience(self, principal: Principal, host: str) -> Hashable:  # noqa: ARG002
        """Make no difference."""
        return None
