"""What a client may do, as the bit sets that some answers carry: bit n is set for the operation with code n.

Without an authorizer everyone may do everything that makes sense for a resource.
"""

from enum import IntEnum
from typing import Final


class Operation(IntEnum):
    """What may be done, by Kafka's codes."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


NO_AUTHORIZER: Final = "No Authorizer is configured."
"""What the APIs of access rules answer with SECURITY_DISABLED."""

NOT_ASKED: Final = -(2**31)
"""The value of a bit set that the client did not ask for."""


def bits_of(*operations: Operation) -> int:
    """Return the bit set of some operations."""
    return sum(1 << operation for operation in operations)


ALL_ON_TOPIC: Final = bits_of(
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
ALL_ON_CLUSTER: Final = bits_of(
    Operation.CREATE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.CLUSTER_ACTION,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
    Operation.IDEMPOTENT_WRITE,
)
ALL_ON_GROUP: Final = bits_of(
    Operation.READ,
    Operation.DELETE,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
