"""Where a satellite listens, whom it lets in, and by which names it may be called."""

import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path


class UnusableSettings(ValueError):
    """Settings with which a satellite must not start."""


@dataclass(frozen=True)
class HttpSettings:
    """The settings of a satellite. Without a file of users everybody who reaches the port is let in."""

    host: str = "127.0.0.1"
    port: int = 0
    users_file: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    client_ca: Path | None = None
    ca: Path | None = None
    """The authorities of the certificates of other instances, beside those that the system trusts."""
    is_insecure: bool = False
    advertised_host: str | None = None
    """How the other instances reach this one, if not by the address it listens on."""
    allowed_hosts: tuple[str, ...] = ()
    """Names by which clients may call it, beside addresses, loopback's name, and its own two above."""
    trusts_group: bool = False
    """Whether requests are forwarded to a leader that cannot prove that it is an instance of ours."""

    @property
    def scheme(self) -> str:
        """The beginning of its URLs."""
        return "https" if self.certificate is not None else "http"

    def url(self, port: int) -> str:
        """Return the URL of the server once it listens."""
        return self._url(self.host, port)

    def url_for_others(self, port: int) -> str:
        """Return the URL by which other instances reach it."""
        return self._url(self.advertised_host or self.host, port)

    def _url(self, host: str, port: int) -> str:
        shown = f"[{host}]" if ":" in host else host
        return f"{self.scheme}://{shown}:{port}"

    @property
    def names(self) -> frozenset[str]:
        """All names by which clients may call it. Addresses need not be named."""
        named = ("localhost", self.host, self.advertised_host or self.host, *self.allowed_hosts)
        return frozenset(name.lower().rstrip(".") for name in named)

    def check(self) -> None:
        """Refuse to be open to others than this machine by accident. Raises UnusableSettings."""
        is_guarded = self.users_file is not None or self.client_ca is not None
        if not is_loopback(self.host) and not is_guarded and not self.is_insecure:
            raise UnusableSettings(
                f"{self.host} is not a loopback address, and nobody has to log in: add --users or "
                "--tls-client-ca, or say --insecure to let everybody in"
            )
        if self.client_ca is not None and self.certificate is None:
            raise UnusableSettings("--tls-client-ca needs --tls-certificate")

    def tls(self) -> ssl.SSLContext | None:
        """Return what TLS needs. Raises UnusableSettings."""
        if self.certificate is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.certificate, self.key)
            if self.client_ca is not None:
                context.load_verify_locations(self.client_ca)
                context.verify_mode = ssl.CERT_REQUIRED
        except OSError as error:
            raise UnusableSettings(f"the files for TLS cannot be used: {error}") from error
        return context

    def tls_to_others(self) -> ssl.SSLContext:
        """Return what TLS needs on the way to another instance like this one. Raises UnusableSettings."""
        context = ssl.create_default_context()
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            if self.certificate is not None:
                # An instance that wants a certificate of its clients wants one of other instances too.
                context.load_cert_chain(self.certificate, self.key)
            for authorities in (self.ca, self.client_ca):
                if authorities is not None:
                    context.load_verify_locations(authorities)
        except OSError as error:
            raise UnusableSettings(f"the files for TLS cannot be used: {error}") from error
        return context


def is_loopback(host: str) -> bool:
    """Say whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
