"""What may be done to what, by Kafka's codes, and the bit sets of it that some answers carry."""

from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple


class Operation(IntEnum):
    """What may be done."""

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
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class ResourceType(IntEnum):
    """What it may be done to."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class Right(NamedTuple):
    """The right to do something to a resource of some type."""

    operation: Operation
    resource_type: ResourceType

    def __str__(self) -> str:
        return f"{self.operation.name} {self.resource_type.name}"


def on_topic(operation: Operation) -> Right:
    """Return a right on topics."""
    return Right(operation, ResourceType.TOPIC)


def on_group(operation: Operation) -> Right:
    """Return a right on groups."""
    return Right(operation, ResourceType.GROUP)


def on_cluster(operation: Operation) -> Right:
    """Return a right on the cluster."""
    return Right(operation, ResourceType.CLUSTER)


def on_transactional_id(operation: Operation) -> Right:
    """Return a right on transactional ids."""
    return Right(operation, ResourceType.TRANSACTIONAL_ID)


CLUSTER: Final = "kafka-cluster"
"""The name of the only resource of type CLUSTER."""

NO_AUTHORIZER: Final = "No Authorizer is configured."
"""What the APIs of access rules answer with SECURITY_DISABLED."""

NOT_ASKED: Final = -(2**31)
"""The value of a bit set that the client did not ask for."""

OPERATIONS_ON: Final = MappingProxyType(
    {
        ResourceType.TOPIC: (
            Operation.READ,
            Operation.WRITE,
            Operation.CREATE,
            Operation.DELETE,
            Operation.ALTER,
            Operation.DESCRIBE,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
        ),
        ResourceType.GROUP: (
            Operation.READ,
            Operation.DELETE,
            Operation.DESCRIBE,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
        ),
        ResourceType.CLUSTER: (
            Operation.CREATE,
            Operation.ALTER,
            Operation.DESCRIBE,
            Operation.CLUSTER_ACTION,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
            Operation.IDEMPOTENT_WRITE,
        ),
        ResourceType.TRANSACTIONAL_ID: (
            Operation.WRITE,
            Operation.DESCRIBE,
            Operation.TWO_PHASE_COMMIT,
        ),
        ResourceType.DELEGATION_TOKEN: (Operation.DESCRIBE,),
        ResourceType.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
    }
)
"""Which operations there are for each type of resource."""


def bits_of(*operations: Operation) -> int:
    """Return the bit set of some operations: bit n is set for the operation with code n."""
    return sum(1 << operation for operation in operations)


ALL_ON_TOPIC: Final = bits_of(*OPERATIONS_ON[ResourceType.TOPIC])
