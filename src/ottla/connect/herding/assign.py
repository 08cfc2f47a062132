"""Who runs what: decided by the leader of the group, from what members run now.

A unit that runs keeps running where it is. What nobody runs goes to the members with the least to do. A
member that has more than its part has to give some up. It joins again when that has stopped, and only
then another member gets it: so a unit never runs twice.

Deviation: Kafka waits five minutes for a worker that has gone before others get its units. Here they get them
at once, because a unit that comes back is given back only if the load asks for it.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.connect.herding.units import Unit


class Division(NamedTuple):
    """What a member gets, and what it gives up."""

    added: tuple[Unit, ...]
    revoked: tuple[Unit, ...]


def divide(wanted: Iterable[Unit], owned: Mapping[str, Iterable[Unit]]) -> dict[str, Division]:
    """Divide the units that are to run among members, by what each of them runs."""
    to_run = list(dict.fromkeys(wanted))
    keeps: dict[str, list[Unit]] = {}
    revoked: dict[str, list[Unit]] = {}
    taken: set[Unit] = set()
    for member in sorted(owned):
        keeps[member], revoked[member] = [], []
        for unit in sorted(set(owned[member])):
            is_kept = unit in to_run and unit not in taken
            (keeps if is_kept else revoked)[member].append(unit)
            # A unit that two members claim stops at the second, and nobody gets it in this round.
            taken.add(unit)
    added: dict[str, list[Unit]] = {member: [] for member in keeps}
    for kind in (True, False):
        units = [unit for unit in to_run if unit.is_connector is kind]
        loads = {member: sum(unit.is_connector is kind for unit in held) for member, held in keeps.items()}
        for unit in units:
            if unit not in taken:
                least = min(loads, key=lambda member: (loads[member], member))
                added[least].append(unit)
                loads[least] += 1
        most = -(-len(units) // len(keeps)) if keeps else 0
        for member, load in loads.items():
            excess = [unit for unit in keeps[member] if unit.is_connector is kind][: max(0, load - most)]
            revoked[member] += excess
    return {member: Division(tuple(added[member]), tuple(revoked[member])) for member in keeps}
