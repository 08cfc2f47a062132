"""Who may do what: asked by handlers, and by whatever remembers an answer."""

from collections.abc import Hashable
from typing import Protocol

from ottla.security.principal import Principal
from ottla.security.rights import OPERATIONS_ON, ResourceType, Right, bits_of


class Authorizer(Protocol):
    """The rules of the cluster."""

    version: int
    """Changes with the rules. What was decided or remembered in an older version may not hold any more."""
    is_active: bool
    """Whether there are rules at all. If not, nobody has to ask."""

    def allows(self, principal: Principal, host: str, right: Right, name: str) -> bool:
        """Say whether a client on `host` may use a right on the resource of this name."""

    def allows_some(self, principal: Principal, host: str, right: Right) -> bool:
        """Say whether there may be a resource that a client may use a right on."""

    def operations(self, principal: Principal, host: str, resource_type: ResourceType, name: str) -> int:
        """Return the bit set of what a client may do to a resource."""

    def audience(self, principal: Principal, host: str) -> Hashable:
        """Return the same only for clients that are allowed the same, now and then.

        An answer that depends on what its reader may see can be remembered for its audience.
        """


class AllowsEverything:
    """The rules of a cluster without access rules. Implements `Authorizer`."""

    version = 0
    is_active = False

    def allows(self, principal: Principal, host: str, right: Right, name: str) -> bool:  # noqa: ARG002
        """Say yes."""
        return True

    def allows_some(self, principal: Principal, host: str, right: Right) -> bool:  # noqa: ARG002
        """Say yes."""
        return True

    def operations(self, principal: Principal, host: str, resource_type: ResourceType, name: str) -> int:  # noqa: ARG002
        """Return everything that can be done to such a resource."""
        return bits_of(*OPERATIONS_ON[resource_type])

    def audience(self, principal: Principal, host: str) -> Hashable:  # noqa: ARG002
        """Make no difference."""
        return None
