"""The subject of a certificate as Java writes it, and the rules that make a principal of it."""

from datetime import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from ottla.security.distinguished_names import (
    InvalidCertificate,
    InvalidRules,
    MappingRules,
    NoRuleMatches,
    subject_of,
)


def certificate(*parts: tuple[x509.ObjectIdentifier, str]) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(oid, text) for oid, text in parts])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "issuer")]))
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(datetime(2026, 1, 1))
        .not_valid_after(datetime(2036, 1, 1))
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.DER)


def test_the_narrowest_part_comes_first() -> None:
    made = certificate(
        (NameOID.ORGANIZATION_NAME, "Ottla"),
        (NameOID.ORGANIZATIONAL_UNIT_NAME, "dev"),
        (NameOID.COMMON_NAME, "alice"),
    )
    assert subject_of(made) == "CN=alice,OU=dev,O=Ottla"


def test_special_characters_are_escaped_and_unknown_parts_are_hex() -> None:
    made = certificate((NameOID.EMAIL_ADDRESS, "a@b"), (NameOID.COMMON_NAME, "a,b+c"))
    assert subject_of(made) == r"CN=a\,b\+c,1.2.840.113549.1.9.1=#1603614062"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a=b", r"a\=b"),
        ("a#b", r"a\#b"),
        ('a"b', r"a\"b"),
        ("  a  b ", r"\ \ a  b\ "),
        ("  ", r"\ \ "),
        ("a\\ ", r"a\\\ "),
        ("x\0y", r"x\00y"),
        ("a\n日本", "a\n日本"),
        ("node,O=Ottla", r"node\,O\=Ottla"),
    ],
)
def test_a_name_is_written_as_java_writes_it(text: str, written: str) -> None:
    assert subject_of(certificate((NameOID.COMMON_NAME, text))) == f"CN={written}"


def test_java_takes_the_bytes_of_every_string_for_utf_8() -> None:
    wide = certificate((NameOID.COMMON_NAME, "ali")).replace(b"\x0c\x03ali", b"\x1e\x03\0al")
    assert subject_of(wide) == r"CN=\00al"
    broken = certificate((NameOID.COMMON_NAME, "ali")).replace(b"\x0c\x03ali", b"\x14\x03a\xfcl")
    assert subject_of(broken) == "CN=a\ufffdl"


@pytest.mark.parametrize("cut", [0, 1, 10, 60])
def test_bytes_that_are_no_certificate_are_refused(cut: int) -> None:
    with pytest.raises(InvalidCertificate):
        subject_of(certificate((NameOID.COMMON_NAME, "alice"))[:cut])


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("DEFAULT", "CN=Alice,OU=Dev,O=Ottla"),
        ("RULE:^CN=(.*?),OU=(.*?),O=(.*?)$/$1@$2/L,DEFAULT", "alice@dev"),
        ("RULE:^CN=(.*?),.*$/$1/U", "ALICE"),
        ("RULE:^CN=(.*?)$/nothing/,RULE:CN=([^,]*),.*/$1/", "nothing"),
        ("RULE:^OU=x$/x/, DEFAULT", "CN=Alice,OU=Dev,O=Ottla"),
        (r"RULE:CN=([^,]*),.*/a\/$1/", "a/Alice"),
    ],
)
def test_the_first_rule_that_matches_counts(rules: str, expected: str) -> None:
    assert MappingRules(rules).name_of("CN=Alice,OU=Dev,O=Ottla") == expected


def test_a_name_that_no_rule_is_about_is_refused() -> None:
    with pytest.raises(NoRuleMatches):
        MappingRules("RULE:^CN=x$/x/").name_of("CN=y")


@pytest.mark.parametrize("text", ["nonsense", "RULE:x", "RULE:(/x/", "DEFAULT;DEFAULT"])
def test_what_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(InvalidRules):
        MappingRules(text)
