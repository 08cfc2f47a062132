"""How many passwords may be tried. Time is given, and nothing waits here.

Each failed login takes from three budgets: of the address, of the user, and of both together. Each of them
fills again slowly. While one is empty, passwords are not looked at. A user who has logged in from an address
needs only the third there, so that others who guess do not keep him out.
"""

import ipaddress
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

_BURST: Final = 10.0
_REFILL_S: Final = 5.0
_USER_BURST: Final = 100.0
_USER_REFILL_S: Final = 1.0
_KEPT_MAX: Final = 10_000
_USER_CHARACTERS_MAX: Final = 64

_Key = tuple[str, str]


class Guesses:
    """Budgets of failed logins."""

    def __init__(self) -> None:
        self._budgets: OrderedDict[_Key, tuple[float, float]] = OrderedDict()
        self._welcome: OrderedDict[_Key, None] = OrderedDict()

    def wait_s(self, address: str, user: str, now_s: float) -> float:
        """Return how long nobody may try to be this user from this address. 0: go on."""
        return max(self._missing_s(key, now_s) for key in self._keys(address, user))

    def failed(self, address: str, user: str, now_s: float) -> Sequence[_Key]:
        """Count a wrong password. The answer is what it was taken from, for `give_back`."""
        keys = self._keys(address, user)
        for key in keys:
            self._budgets[key] = (self._left(key, now_s) - 1, now_s)
            self._budgets.move_to_end(key)
        while len(self._budgets) > _KEPT_MAX:
            self._budgets.popitem(last=False)
        return keys

    def give_back(self, keys: Sequence[_Key], now_s: float) -> None:
        """Take back what was counted before it was known: the password was right, or nobody could say."""
        for key in keys:
            self._budgets[key] = (min(_limits(key)[0], self._left(key, now_s) + 1), now_s)

    def succeeded(self, address: str, user: str) -> None:
        """Note where a user comes from."""
        known = _network(address), user[:_USER_CHARACTERS_MAX]
        self._welcome[known] = None
        self._welcome.move_to_end(known)
        if len(self._welcome) > _KEPT_MAX:
            self._welcome.popitem(last=False)

    def _keys(self, address: str, user: str) -> list[_Key]:
        network, user = _network(address), user[:_USER_CHARACTERS_MAX]
        both = network, user
        return [both] if both in self._welcome else [both, (network, ""), ("", user)]

    def _left(self, key: _Key, now_s: float) -> float:
        burst, refill_s = _limits(key)
        left, since_s = self._budgets.get(key, (burst, now_s))
        return min(burst, left + (now_s - since_s) / refill_s)

    def _missing_s(self, key: _Key, now_s: float) -> float:
        return max(0.0, (1 - self._left(key, now_s)) * _limits(key)[1])


def _limits(key: _Key) -> tuple[float, float]:
    # A user has more of them over all addresses: otherwise anybody could lock out anybody.
    return (_USER_BURST, _USER_REFILL_S) if not key[0] else (_BURST, _REFILL_S)


def _network(address: str) -> str:
    """Return what one guesser can be expected to have: an address, or with IPv6 a network."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4:
        return address
    return str(ipaddress.ip_network(f"{address.partition('%')[0]}/64", strict=False))
