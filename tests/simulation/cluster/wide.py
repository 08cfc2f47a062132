"""A wider world for many seeds: two directories, configs that change, slower sessions, and further clients.

All of it is drawn from a generator of its own, and seeds that are known to find something are left as they
are. So these, and all others that are not drawn, are the runs that they were before.
"""

from random import Random
from typing import Final

from tests.simulation.cluster.clients import sharing, streaming
from tests.simulation.cluster.faults.directories import DIRECTORIES
from tests.simulation.cluster.faults.kinds import OF_DIRECTORIES, RARE, WIDE, WIDE_ALONE, WIDE_FAMILIES
from tests.simulation.cluster.plans import FAULTS_FROM_MS, FAULTS_MS_PER_OPERATION, Fault, Plan
from tests.simulation.cluster.planted.found import FOUND_BY
from tests.simulation.cluster.planted.found_wide import FOUND_SOMETHING, WIDE_FOUND_BY

WIDE_SHARE: Final = 0.5
"""How many seeds have a wider world."""
ALONE_SHARE: Final = 0.08
"""How many of these have a fault beside which nothing else breaks."""
KEPT: Final = frozenset((*FOUND_BY.values(), *FOUND_SOMETHING))
"""Seeds that stay what they are."""
WIDE_KEPT: Final = frozenset(WIDE_FOUND_BY.values())
"""Seeds whose wider world stays what it is."""
ENDINGS_SHARE: Final = 0.25
WIDE_CLIENTS: Final = ("again", "habits", "sharing", "streaming", "waiting")
_INTERVAL: Final = "broker.heartbeat.interval.ms"
_SESSION: Final = "broker.session.timeout.ms"
_TIMES: Final[dict[str, tuple[str, ...]]] = {
    # The last of each is Kafka's default.
    _INTERVAL: ("200", "500", "2000"),
    _SESSION: ("1500", "4000", "9000"),
    "controller.quorum.election.timeout.ms": ("300", "400", "1000"),
    "controller.quorum.fetch.timeout.ms": ("400", "800", "2000"),
    "controller.quorum.election.backoff.max.ms": ("300", "1000"),
    "replica.lag.time.max.ms": ("1500", "5000", "30000"),
}
_OLD_FEATURES: Final = (
    "eligible.leader.replicas.version=0",
    "transaction.version=0",
    "group.version=0",
    "share.version=0",
    "streams.version=0",
)
_NEEDED: Final = {
    "consumer": "group.version=0",
    "sharing": "share.version=0",
    "streaming": "streams.version=0",
}
"""The features that clients do not work without."""
_FILE_CONFIGS: Final = (
    {"log.retention.ms": "2000"},
    {"min.insync.replicas": "1"},
    {"log.retention.ms": "3000", "min.insync.replicas": "1"},
)
"""What the files of nodes say, and the metadata says otherwise."""


def widened(plan: Plan) -> Plan:
    """Return a plan, or the same one in a wider world."""
    rng = Random(f"wide {plan.seed}")
    if plan.seed in KEPT or plan.nodes < 3 or rng.random() >= WIDE_SHARE:
        return plan
    settings = dict(plan.settings)
    if rng.random() < 0.6:
        settings["log.dirs"] = DIRECTORIES
    if rng.random() < 0.4:
        settings |= {key: rng.choice(values) for key, values in _TIMES.items()}
        if int(settings[_INTERVAL]) > int(settings[_SESSION]):
            # No broker could keep such a session.
            settings[_INTERVAL] = _TIMES[_INTERVAL][1]
    dynamic: tuple[tuple[str, str], ...] = ()
    if rng.random() < 0.3:
        settings |= rng.choice(_FILE_CONFIGS)
        dynamic = (("log.retention.ms", "-1"), ("min.insync.replicas", "2"))
    features = plan.features
    if rng.random() < 0.25:
        features = tuple(dict.fromkeys((rng.choice(_OLD_FEATURES), *features)))
        names = [feature.partition("=")[0] for feature in features]
        features = features if len(set(names)) == len(names) else features[:1]
    clients = tuple(client for client in WIDE_CLIENTS if rng.random() < 0.3) or (rng.choice(WIDE_CLIENTS),)
    clients = tuple(client for client in clients if _NEEDED.get(client) not in features) or ("habits",)
    if plan.seed not in WIDE_KEPT and Random(f"endings {plan.seed}").random() < ENDINGS_SHARE:
        clients = (*clients, "endings")
    if "sharing" in clients:
        settings |= sharing.SETTINGS
    if "streaming" in clients:
        settings |= streaming.SETTINGS
    # A wider world is a longer run, so it has less of the rest.
    plan = plan._replace(
        settings=settings,
        features=features,
        dynamic=dynamic,
        clients=tuple(client for client in plan.clients if _NEEDED.get(client) not in features),
        wide=clients,
        operations=min(plan.operations, 20),
        more=plan.more[:1],
    )
    if any(fault.kind in RARE for fault in plan.faults):
        return plan
    return _with_wide_faults(plan, rng)


def _with_wide_faults(plan: Plan, rng: Random) -> Plan:
    if rng.random() < ALONE_SHARE:
        fault = Fault(
            FAULTS_FROM_MS + 1_000, rng.choice((50, 200, 700)), rng.choice(WIDE_ALONE), rng.getrandbits(32)
        )
        return plan._replace(faults=(fault,), operations=40)
    kinds: tuple[str, ...] = rng.choice(WIDE_FAMILIES) if rng.random() < 0.6 else WIDE
    if plan.settings.get("log.dirs") != DIRECTORIES:
        kinds = tuple(kind for kind in kinds if kind not in OF_DIRECTORIES)
    faults = tuple(
        Fault(
            FAULTS_FROM_MS + rng.randrange(FAULTS_MS_PER_OPERATION * plan.operations),
            rng.choice((200, 700, 1500, 3000)),
            rng.choice(kinds),
            rng.getrandbits(32),
        )
        for _ in range(rng.choice((2, 3, 4)))
    )
    return plan._replace(faults=tuple(sorted((*plan.faults[:2], *faults))))
