"""Groups that hold no positions: the ledgers of pipelines.

A pipeline notes in a group which batches it has delivered. The offsets in there count batches, and have
nothing to do with the records of the topic that they are committed for. So such a group has no lag.
"""

from typing import Final

LEDGER_PREFIX: Final = "ottla.ledger."


def is_ledger(group_id: str) -> bool:
    """Say whether a group is a ledger."""
    return group_id.startswith(LEDGER_PREFIX)
