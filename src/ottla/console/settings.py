"""Which clusters a console shows, where it listens, and whom it lets in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ottla.satellite.settings import HttpSettings, UnusableSettings, is_loopback

_OWN_LOGIN: Final = ("sasl.username", "sasl.password", "sasl.mechanism", "sasl.jaas.config")
MECHANISMS: Final = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN")
"""By which a visitor can log in, the safest first."""


@dataclass(frozen=True)
class ClusterSettings:
    """One cluster: its name in addresses, and how to reach it."""

    name: str
    properties: Mapping[str, str]
    """Without a name and a password: the console has no rights of its own."""
    registry_url: str | None = None
    connect_url: str | None = None
    """The REST API of a worker of connectors."""
    is_profile: bool = False
    """Whether the name is that of a profile, by which commands reach it, too."""

    @classmethod
    def of(
        cls,
        name: str,
        properties: Mapping[str, str],
        registry_url: str | None = None,
        *,
        connect_url: str | None = None,
        is_profile: bool = False,
    ) -> "ClusterSettings":
        """Make the settings of a cluster from the properties of a client."""
        kept = {key: value for key, value in properties.items() if key not in _OWN_LOGIN}
        chosen = properties.get("sasl.mechanism")
        if chosen in MECHANISMS:
            kept["sasl.mechanism"] = chosen
        return cls(name, kept, registry_url, connect_url, is_profile)

    @property
    def command_words(self) -> list[str]:
        """What makes a command go to this cluster."""
        if self.is_profile:
            return ["--profile", self.name]
        return ["--bootstrap", str(self.properties["bootstrap.servers"])]

    @property
    def needs_login(self) -> bool:
        """Whether the cluster asks its clients who they are."""
        return self.properties.get("security.protocol", "PLAINTEXT").startswith("SASL_")

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """What a visitor can log in with."""
        chosen = self.properties.get("sasl.mechanism")
        return MECHANISMS if chosen is None else (chosen,)

    def for_visitor(self, mechanism: str, user: str, password: str) -> dict[str, str]:
        """Return the properties of a client that is this visitor."""
        own = {"sasl.mechanism": mechanism, "sasl.username": user, "sasl.password": password}
        return {**self.properties, **own}


@dataclass(frozen=True)
class ConsoleSettings:
    """The settings of a console."""

    clusters: tuple[ClusterSettings, ...]
    http: HttpSettings = field(default_factory=HttpSettings)
    idle_s: float = 1800.0
    """A session ends when it was not used for so long."""
    session_s: float = 43_200.0
    """A session ends after this time in any case."""

    def __post_init__(self) -> None:
        assert self.clusters, "there is one at least"

    def find(self, name: str) -> ClusterSettings | None:
        """Return a cluster by its name."""
        return next((cluster for cluster in self.clusters if cluster.name == name), None)

    def check(self) -> None:
        """Refuse to show a cluster without logins to others than this machine. Raises UnusableSettings."""
        http = self.http
        if http.users_file is not None:
            raise UnusableSettings("visitors log in with the users of the cluster: leave out --users")
        if is_loopback(http.host):
            return
        open_ones = [cluster.name for cluster in self.clusters if not cluster.needs_login]
        if open_ones:
            raise UnusableSettings(
                f"{http.host} is not a loopback address, and nobody has to log in at the cluster "
                f"{open_ones[0]!r}: listen on 127.0.0.1, or set up logins on the cluster"
            )
        if http.certificate is None and not http.is_insecure:
            raise UnusableSettings(
                f"{http.host} is not a loopback address, and passwords would be readable on the way: add "
                "--tls-certificate and --tls-key, or say --insecure if a proxy encrypts them"
            )
