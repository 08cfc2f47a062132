"""What a visitor may do beside the cluster.

A registry or a worker of connectors does not know who a visitor is, and the console must not lend anybody
rights. So where the cluster asks for logins, the cluster decides: who may describe it sees what is beside it,
and who may alter it changes that.
"""

from ottla.client.admin.access_rules import Operation
from ottla.console.serving.call import Call
from ottla.satellite.errors import HttpError


async def may(call: Call, right: Operation) -> bool:
    """Say whether a visitor has a right on the cluster. Raises ClientError."""
    if not call.cluster.needs_login:
        # Only this machine reaches the console then, and what is beside the cluster as well.
        return True
    return right in await call.visit.access.admin.cluster.authorized_operations()


async def check_right(call: Call, right: Operation) -> None:
    """Refuse what a visitor may not do. Raises HttpError or ClientError."""
    if not await may(call, right):
        word = right.name.lower()
        raise HttpError(
            403,
            f"{call.visit.user} would need the right to {word} the cluster: an administrator can add it with "
            f"`ottla acl add`",
        )
