"""The recent past, by key, in memory and bounded.

So many entries are kept for each key, and so many items for all keys together, where an entry may count for
several. The key that was quiet for longest is forgotten first. Adding an entry appends a tuple: nothing is
formatted before somebody reads.
"""

from collections import OrderedDict, deque
from typing import Generic, TypeVar

E = TypeVar("E")


class BoundedJournal(Generic[E]):
    """The last entries of the keys that were active last."""

    def __init__(self, entries_max: int = 256, items_max: int = 500_000) -> None:
        self._entries_max = entries_max
        self._items_max = items_max
        self._items = 0
        self._by_key: OrderedDict[str, deque[tuple[E, int]]] = OrderedDict()

    def append(self, key: str, entry: E, items: int = 1) -> None:
        """Note that something happened; `items` is how much the entry counts for."""
        entries = self._by_key.get(key)
        if entries is None:
            entries = self._by_key[key] = deque()
        else:
            self._by_key.move_to_end(key)
        entries.append((entry, items))
        self._items += items
        if len(entries) > self._entries_max:
            self._items -= entries.popleft()[1]
        while self._items > self._items_max and len(self._by_key) > 1:
            _, forgotten = self._by_key.popitem(last=False)
            self._items -= sum(items for _, items in forgotten)

    def of(self, key: str) -> list[E]:
        """Return what is still known of a key, oldest first."""
        return [entry for entry, _ in self._by_key.get(key, ())]
