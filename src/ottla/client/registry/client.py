"""A client of a schema registry, ours or any that speaks the API of Confluent's.

    registry = RegistryClient("http://127.0.0.1:8081")
    registry.register("orders-value", '{"type": "record", ...}')

It waits for answers, and remembers all that cannot change. So a serializer waits for the registry once for
each schema, and not for each record.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self
from urllib.parse import quote, urlsplit, urlunsplit

import httpx

from ottla.client.errors import ClientError
from ottla.schemas.parsed import ParsedSchema, Reference
from ottla.schemas.parsing import parse_schema

_CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_RETRIED: Final = (502, 503, 504)


class RegistryRefused(ClientError):
    """The registry answered with an error. `code` is the registry's own."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"the schema registry refused: {message} (error {code})")
        self.code = code


class RegistryUnreachable(ClientError):
    """No URL of the registry answered."""

    retriable = True


@dataclass(frozen=True)
class Registered:
    """A schema in a registry. By id alone there is no subject and no version."""

    id: int
    schema_type: str
    text: str
    references: tuple[Reference, ...] = ()
    subject: str | None = None
    version: int | None = None
    guid: str | None = None


class RegistryClient:
    """Talks to one registry, over any of its URLs."""

    def __init__(
        self,
        urls: str | Sequence[str],
        *,
        username: str | None = None,
        password: str | None = None,
        ca_location: str | None = None,
        certificate: tuple[str, str] | None = None,
        timeout_s: float = 30.0,
    ) -> None:
        listed = urls.split(",") if isinstance(urls, str) else list(urls)
        self._urls = [url.strip().rstrip("/") for url in listed if url.strip()]
        if not self._urls:
            raise ValueError("a registry client needs the URL of a registry")
        self._client = httpx.Client(
            auth=None if username is None else (username, password or ""),
            verify=_tls(self._urls, ca_location, certificate),
            timeout=timeout_s,
            headers={"Accept": _CONTENT_TYPE, "Content-Type": _CONTENT_TYPE},
        )
        self._by_id: dict[tuple[int, str | None], Registered] = {}
        self._by_guid: dict[str, Registered] = {}
        self._versions: dict[tuple[str, int], Registered] = {}
        self._known: dict[tuple[str, str, bool], Registered] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    # Schemas.

    def register(
        self,
        subject: str,
        text: str,
        schema_type: str = "AVRO",
        references: Sequence[Reference] = (),
        *,
        normalize: bool = False,
    ) -> Registered:
        """Register a schema, or find it if it is there."""
        body = _body(text, schema_type, references)
        return self._known_or_asked(f"/subjects/{_quote(subject)}/versions", subject, body, normalize)

    def find(
        self,
        subject: str,
        text: str,
        schema_type: str = "AVRO",
        references: Sequence[Reference] = (),
        *,
        normalize: bool = False,
    ) -> Registered:
        """Find a schema in a subject. Raises RegistryRefused if it is not there."""
        body = _body(text, schema_type, references)
        return self._known_or_asked(f"/subjects/{_quote(subject)}", subject, body, normalize)

    def _known_or_asked(self, path: str, subject: str, body: dict[str, Any], normalize: bool) -> Registered:
        """Send a schema to a path, unless that was done before: the answer cannot have changed."""
        key = path, json.dumps(body), normalize
        known = self._known.get(key)
        if known is None:
            answer = self.ask("POST", path, body, normalize=normalize)
            # Older registries answer with the id alone.
            known = self._known[key] = _registered({**body, "subject": subject, **answer})
        return known

    def by_id(self, schema_id: int, subject: str | None = None) -> Registered:
        """Return a schema by its id, in the context of a subject if one is given."""
        known = self._by_id.get((schema_id, subject))
        if known is None:
            options = {} if subject is None else {"subject": subject}
            answer = self.ask("GET", f"/schemas/ids/{schema_id}", **options)
            known = self._by_id[schema_id, subject] = _registered({**answer, "id": schema_id})
        return known

    def by_guid(self, guid: str) -> Registered:
        """Return a schema by its guid."""
        known = self._by_guid.get(guid)
        if known is None:
            answer = self.ask("GET", f"/schemas/guids/{guid}")
            known = self._by_guid[guid] = _registered({"id": -1, **answer, "guid": guid})
        return known

    def version(self, subject: str, version: int) -> Registered:
        """Return a version of a subject, also one that was deleted."""
        known = self._versions.get((subject, version))
        if known is None:
            path = f"/subjects/{_quote(subject)}/versions/{version}"
            known = self._versions[subject, version] = _registered(self.ask("GET", path, deleted=True))
        return known

    def latest(self, subject: str) -> Registered:
        """Return the latest version of a subject. It is asked for each time."""
        return _registered(self.ask("GET", f"/subjects/{_quote(subject)}/versions/latest"))

    def incompatibilities(
        self,
        subject: str,
        text: str,
        schema_type: str = "AVRO",
        references: Sequence[Reference] = (),
    ) -> list[str]:
        """Return why a schema could not be registered under a subject: nothing if it could be."""
        answer = self.ask(
            "POST",
            f"/compatibility/subjects/{_quote(subject)}/versions",
            _body(text, schema_type, references),
            verbose=True,
        )
        messages: list[str] = answer.get("messages") or []
        return [] if answer["is_compatible"] else messages or ["the schema is not compatible"]

    def parse(self, schema: Registered) -> ParsedSchema:
        """Parse a schema with all that it refers to."""
        return parse_schema(
            schema.schema_type, schema.text, schema.references, self.resolve(schema.references)
        )

    def resolve(self, references: Sequence[Reference]) -> dict[str, str]:
        """Return the texts of references by name, those of the inner ones first."""
        resolved: dict[str, str] = {}
        for reference in references:
            if reference.name not in resolved:
                found = self.version(reference.subject, reference.version)
                resolved |= self.resolve(found.references)
                resolved[reference.name] = found.text
        return resolved

    # The API itself.

    def ask(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """Send a request, and return what was answered. Raises RegistryRefused or RegistryUnreachable."""
        parameters = {
            name: str(value).lower() if isinstance(value, bool) else value
            for name, value in options.items()
            if value is not False
        }
        reasons = []
        for url in list(self._urls):
            try:
                answer = self._client.request(method, url + path, json=body, params=parameters)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                reasons.append(f"{without_login(url)}: {str(error) or type(error).__name__}")
                self._urls.append(self._urls.pop(0))
                continue
            if answer.status_code in _RETRIED and len(self._urls) > 1:
                reasons.append(f"{without_login(url)}: HTTP {answer.status_code}")
                continue
            return _content(answer)
        raise RegistryUnreachable(
            f"no schema registry answers: check that it is running and that its URL is correct "
            f"({'; '.join(reasons)})"
        )


def without_login(url: str) -> str:
    """Return a URL as it may be shown: without a name and a password."""
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        # It is none. A password is before the last `@` all the same.
        return url.strip().rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _content(answer: httpx.Response) -> Any:
    try:
        content = answer.json() if answer.content else None
    except ValueError:
        content = None
    if answer.is_success:
        return content
    if isinstance(content, Mapping) and "error_code" in content:
        raise RegistryRefused(content["error_code"], str(content.get("message")))
    raise RegistryRefused(answer.status_code, f"HTTP {answer.status_code}, and no message")


def _tls(urls: Sequence[str], ca_location: str | None, certificate: tuple[str, str] | None) -> Any:
    if not any(url.lower().startswith("https:") for url in urls):
        # Nothing is encrypted, and loading the authorities would take longer than all else.
        return False
    if ca_location is None and certificate is None:
        return True
    import ssl

    context = ssl.create_default_context(cafile=ca_location)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if certificate is not None:
        context.load_cert_chain(*certificate)
    return context


def _quote(subject: str) -> str:
    return quote(subject, safe="")


def _body(text: str, schema_type: str, references: Sequence[Reference]) -> dict[str, Any]:
    body: dict[str, Any] = {"schema": text}
    if schema_type != "AVRO":
        body["schemaType"] = schema_type
    if references:
        body["references"] = [reference._asdict() for reference in references]
    return body


def _registered(answer: Mapping[str, Any]) -> Registered:
    return Registered(
        id=answer["id"],
        schema_type=answer.get("schemaType") or "AVRO",
        text=answer.get("schema") or "",
        references=tuple(
            Reference(item["name"], item["subject"], item["version"])
            for item in answer.get("references") or ()
        ),
        subject=answer.get("subject"),
        version=answer.get("version"),
        guid=answer.get("guid"),
    )
