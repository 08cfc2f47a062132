"""Names of certificates as principals: the subject as Java writes it, and the rules that shorten it.

A subject lies in a certificate from the widest part to the narrowest. RFC 2253 writes it the other way round:
`CN=alice,OU=dev,O=Ottla`. Only as much of DER is read here as the way to the subject needs: the certificate
was checked before by the TLS library.
"""

import re
from typing import Final

_SHORT_NAMES: Final = {
    "2.5.4.3": "CN",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "2.5.4.6": "C",
    "2.5.4.9": "STREET",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
# UTF-8, printable, T.61, IA5 and BMP strings. Java takes the bytes of all of them for UTF-8.
_TEXTS: Final = (0x0C, 0x13, 0x14, 0x16, 0x1E)
_VERSION: Final = 0xA0
_SPECIAL: Final = re.compile(r'([,=+<>#;"\\])')
_OUTER_SPACE: Final = re.compile(r"\A[ \r]+|[ \r]+\Z")
_RULE: Final = re.compile(r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*(?:,|$)")
_GROUP: Final = re.compile(r"\$(\d+)")


class InvalidCertificate(ValueError):
    """Bytes that are no certificate."""


class InvalidRules(ValueError):
    """A text that is no list of mapping rules."""


class NoRuleMatches(Exception):
    """None of the rules is about a name."""


def subject_of(certificate: bytes) -> str:
    """Return the subject of a DER certificate, as RFC 2253 writes it."""
    try:
        _, content, _ = _read(certificate, 0)
        _, content, _ = _read(content, 0)
        position = 0
        tag, _, after = _read(content, position)
        if tag == _VERSION:
            position = after
        # Serial number, signature algorithm, issuer and validity come before the subject.
        for _ in range(4):
            _, _, position = _read(content, position)
        _, subject, _ = _read(content, position)
        return ",".join(reversed([_relative_name(part) for part in _elements(subject)]))
    except IndexError as error:
        raise InvalidCertificate("the certificate cannot be read") from error


def _read(data: bytes, position: int) -> tuple[int, bytes, int]:
    """Return the tag and the content of what begins at a position, and where it ends."""
    tag, size = data[position], data[position + 1]
    start = position + 2
    if size & 0x80:
        count = size & 0x7F
        size = int.from_bytes(data[start : start + count])
        start += count
    if start + size > len(data):
        raise IndexError("a certificate is cut off")
    return tag, data[start : start + size], start + size


def _elements(data: bytes) -> list[bytes]:
    found: list[bytes] = []
    position = 0
    while position < len(data):
        _, content, position = _read(data, position)
        found.append(content)
    return found


def _relative_name(data: bytes) -> str:
    return "+".join(_attribute(one) for one in _elements(data))


def _attribute(data: bytes) -> str:
    _, oid, position = _read(data, 0)
    tag, value, end = _read(data, position)
    name = _dotted(oid)
    if name not in _SHORT_NAMES or tag not in _TEXTS:
        return f"{_SHORT_NAMES.get(name, name)}=#{data[position:end].hex()}"
    text = value.decode("utf-8", "replace")
    return f"{_SHORT_NAMES[name]}={_escaped(text)}"


def _dotted(oid: bytes) -> str:
    numbers = [min(oid[0] // 40, 2)]
    numbers.append(oid[0] - 40 * numbers[0])
    value = 0
    for byte in oid[1:]:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    return ".".join(map(str, numbers))


def _escaped(value: str) -> str:
    escaped = _SPECIAL.sub(r"\\\1", value).replace("\0", r"\00")
    return _OUTER_SPACE.sub(lambda space: "".join(f"\\{one}" for one in space[0]), escaped)


class MappingRules:
    """The rules of `ssl.principal.mapping.rules`. The first that matches a whole name counts."""

    def __init__(self, text: str) -> None:
        """Read rules such as `RULE:^CN=(.*?),OU=(.*?)$/$1@$2/L,DEFAULT`."""
        self._rules: list[tuple[re.Pattern[str], str, str] | None] = []
        position = 0
        while position < len(text.strip()):
            match = _RULE.match(text, position)
            if match is None or match.end() == position:
                raise InvalidRules(f"there is no rule at {text[position : position + 40]!r}")
            default, pattern, replacement, case = match.groups()
            try:
                self._rules.append(
                    None if default else (re.compile(pattern.replace(r"\/", "/")), replacement, case)
                )
            except re.error as error:
                raise InvalidRules(f"{pattern!r} is not a regular expression: {error}") from error
            position = match.end()

    def name_of(self, subject: str) -> str:
        """Return the name of the principal. Raises `NoRuleMatches`."""
        for rule in self._rules:
            if rule is None:
                return subject
            pattern, replacement, case = rule
            match = pattern.fullmatch(subject)
            if match is not None:
                filled = replacement.replace(r"\/", "/")
                name = _GROUP.sub(lambda group, found=match: found[int(group[1])] or "", filled)  # type: ignore[misc]
                return name.lower() if case == "L" else name.upper() if case == "U" else name
        raise NoRuleMatches(f"no rule of ssl.principal.mapping.rules matches {subject}")
