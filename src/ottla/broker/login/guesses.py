"""How fast passwords can be tried: a few times at once, and then slowly.

Each wrong password costs time, for its address with its user, and for its address with all users. Who owes
more than is free waits for the answer, whether the password was wrong or right, because one that comes sooner
would tell. Who would have to wait for too long gets none, and comes again later.

What others owe never counts: an address that tries the passwords of a user slows the user down only there. Of
an IPv6 address its network counts, because a single machine has as many addresses as it likes.
"""

from ipaddress import IPv6Address, ip_address
from typing import Final, NamedTuple

WAIT_MS_MAX: Final = 5_000
"""How long an answer may be held back."""
KEYS_MAX: Final = 20_000
USER_CHARACTERS_MAX: Final = 64
"""As much of a name as counts: a stranger can send a very long one."""


class Price(NamedTuple):
    """What a wrong password costs, and how many are free."""

    cost_ms: int
    free: int


OF_USER: Final = Price(1_000, 5)
"""Of one user at one address: five at once, then one in a second."""
OF_ADDRESS: Final = Price(100, 50)
"""Of one address, whatever the user: fifty at once, then ten in a second."""


class Guesses:
    """What each address owes for wrong passwords, as the time when it owes nothing any more."""

    def __init__(self) -> None:
        self._even_ms: dict[tuple[str, str], int] = {}

    def find_wait_ms(self, host: str, user: str, now_ms: int) -> int | None:
        """Return for how long an answer is held back; None if that is too long, and there is to be none."""
        wait_ms = max(
            self._even_ms.get(key, 0) - now_ms - (price.free - 1) * price.cost_ms
            for key, price in _keys(host, user)
        )
        return None if wait_ms > WAIT_MS_MAX else max(0, wait_ms)

    def was_wrong(self, host: str, user: str, now_ms: int) -> None:
        """Take note of a wrong password that is answered."""
        for key, price in _keys(host, user):
            self._even_ms[key] = max(self._even_ms.pop(key, 0), now_ms) + price.cost_ms
        if len(self._even_ms) > KEYS_MAX:
            self._forget(now_ms)

    def _forget(self, now_ms: int) -> None:
        """Forget who owes nothing, and then whose last wrong password was long ago."""
        owing = {key: even_ms for key, even_ms in self._even_ms.items() if even_ms > now_ms}
        for key in list(owing)[: max(0, len(owing) - KEYS_MAX // 2)]:
            del owing[key]
        self._even_ms = owing


def _keys(host: str, user: str) -> tuple[tuple[tuple[str, str], Price], ...]:
    network = _network(host)
    of_address = ((network, ""), OF_ADDRESS)
    return (((network, user[:USER_CHARACTERS_MAX]), OF_USER), of_address) if user else (of_address,)


def _network(host: str) -> str:
    if ":" not in host:
        return host
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, IPv6Address):
        return str(address.ipv4_mapped or address.exploded[:19])
    return host
