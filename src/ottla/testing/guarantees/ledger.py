"""Money that is moved between accounts: whatever happens, none is made and none is lost.

An account is a key. A transfer is a transaction that enters an amount into two accounts, once with each sign.
An entry is a value that tells both, so all that is checked for values is checked for entries too.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from ottla.testing.guarantees.anomaly import Anomaly
from ottla.testing.guarantees.history import EventType, Operation
from ottla.testing.guarantees.indexes import Indexes

ACCOUNTS: Final = range(1 << 20, (1 << 20) + 6)
"""The keys that are accounts."""
AMOUNT_MAX: Final = 499
_AMOUNTS: Final = 1000


def entry(transfer: int, amount: int) -> int:
    """Return the value that enters an amount into an account."""
    assert -AMOUNT_MAX <= amount <= AMOUNT_MAX, "an amount has room in its value"
    return transfer * _AMOUNTS + amount + AMOUNT_MAX


def transfer_of(value: int) -> int:
    """Return the number of the transfer that an entry belongs to."""
    return value // _AMOUNTS


def amount_of(value: int) -> int:
    """Return the amount of an entry."""
    return value % _AMOUNTS - AMOUNT_MAX


def find_wrong_sums(indexes: Indexes) -> Iterator[Anomaly]:
    """A last reading in which all accounts together have gained or lost."""
    for reader in _auditors(indexes):
        total = sum(amount_of(value) for _, value in _entries(reader))
        if total:
            yield Anomaly("wrong-sum", None, f"operation {reader.number} found {total:+d}")


def find_torn_transfers(indexes: Indexes) -> Iterator[Anomaly]:
    """A transfer that a last reading has found in one account but not in another."""
    for reader in _auditors(indexes):
        accounts: dict[int, list[int]] = defaultdict(list)
        for key, value in _entries(reader):
            accounts[transfer_of(value)].append(key)
        for transfer, keys in accounts.items():
            if len(set(keys)) != 2:
                detail = f"operation {reader.number} found transfer {transfer} in {sorted(keys)} alone"
                yield Anomaly("torn-transfer", keys[0], detail)


def _auditors(indexes: Indexes) -> Iterator[Operation]:
    for operation in indexes.operations:
        if operation.function == "final" and operation.type is EventType.OK:
            yield operation


def _entries(reader: Operation) -> Iterator[tuple[int, int]]:
    for polled in reader.polls:
        for key, records in polled.records.items():
            if key in ACCOUNTS:
                for _, value in records:
                    yield key, value
