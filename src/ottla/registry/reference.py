"""The reference of the REST API, written from its routes: `make reference` puts it into the docs."""

from collections.abc import Iterator
from typing import Final

from ottla.registry.serving.routes import ROUTES

_INTRODUCTION: Final = """\
# The REST API of the registry

`ottla registry` has the routes, parameters and error codes of Confluent's Schema Registry 8.1. Bodies and
answers are JSON. An error is `{"error_code": 40401, "message": "..."}`, and its HTTP status is the code, or
its first three digits.

Any path also works below `/contexts/{context}`. Then its subjects are those of the context. A subject of
another context than the default one is written `:.context:subject`. `GET /health` is Ottla's own, and so is
`GET /metrics`, for Prometheus. `make reference` writes this page from
the code.

| route | what it does | query parameters |
|---|---|---|
"""


def render_reference() -> str:
    """Return the page, as Markdown."""
    return _INTRODUCTION + "".join(_rows())


def _rows() -> Iterator[str]:
    for route in ROUTES:
        doc = (route.handler.__doc__ or "").strip().splitlines()[0]
        parameters = ", ".join(f"`{name}`" for name in route.parameters)
        yield f"| {route.method} `{route.path}` | {doc} | {parameters} |\n"


if __name__ == "__main__":
    print(render_reference(), end="")
