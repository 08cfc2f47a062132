"""The certificates of secure nodes: an authority, and what it signs for each node.

All nodes have the same subject, which is a super user: nodes prove to each other by their certificates that
they belong to the cluster. The authority signs nothing else.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Any, Final, NamedTuple

from ottla.cli.failure import Failure

NODE: Final = "CN=node,O=Ottla"
"""The subject of every node, as principals write it."""
_VALID_DAYS: Final = 3650
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


class Authority(NamedTuple):
    """A certificate authority, in PEM."""

    key: bytes
    certificate: bytes


def make_authority() -> Authority:
    """Make the authority of a new cluster."""
    x509, hashes, _, ec = _library()
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(x509, "Ottla certificate authority")
    certificate = (
        _builder(x509, name, name, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Authority(_key_pem(key), _certificate_pem(certificate))


def make_node(authority: Authority, hosts: Sequence[str]) -> bytes:
    """Return the key and the certificate of a node with these names and addresses, with the authority's."""
    x509, hashes, serialization, ec = _library()
    ca_key = serialization.load_pem_private_key(authority.key, None)
    ca = x509.load_pem_x509_certificate(authority.certificate)
    key = ec.generate_private_key(ec.SECP256R1())
    names = [_general_name(x509, text) for text in dict.fromkeys((*_LOOPBACK, *hosts))]
    uses = [x509.oid.ExtendedKeyUsageOID.SERVER_AUTH, x509.oid.ExtendedKeyUsageOID.CLIENT_AUTH]
    certificate = (
        _builder(x509, _name(x509, "node"), ca.subject, key)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    return _key_pem(key) + _certificate_pem(certificate) + authority.certificate


def _library() -> tuple[Any, Any, Any, Any]:
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError as error:
        raise Failure("--secure makes certificates: install `ottla[security]`") from error
    return x509, hashes, serialization, ec


def _name(x509: Any, common: str) -> Any:
    oid = x509.oid.NameOID
    parts = ((oid.ORGANIZATION_NAME, "Ottla"), (oid.COMMON_NAME, common))
    return x509.Name([x509.NameAttribute(one, text) for one, text in parts])


def _builder(x509: Any, subject: Any, issuer: Any, key: Any) -> Any:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=_VALID_DAYS))
    )


def _key_pem(key: Any) -> bytes:
    _, _, serialization, _ = _library()
    written: bytes = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return written


def _certificate_pem(certificate: Any) -> bytes:
    _, _, serialization, _ = _library()
    written: bytes = certificate.public_bytes(serialization.Encoding.PEM)
    return written


def _general_name(x509: Any, text: str) -> Any:
    try:
        return x509.IPAddress(ip_address(text))
    except ValueError:
        return x509.DNSName(text)
