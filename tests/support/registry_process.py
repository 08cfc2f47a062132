"""A schema registry in a process of its own, on loopback, for tests."""

import json
from typing import Any
from urllib.parse import quote

from tests.support.satellite_process import SatelliteProcess


class RegistryProcess(SatelliteProcess):
    """`ottla registry`."""

    def __init__(
        self, bootstrap: str, *arguments: str, port: int | None = None, scheme: str = "http"
    ) -> None:
        super().__init__("registry", bootstrap, *arguments, port=port, scheme=scheme)

    def register(self, subject: str, schema: Any, schema_type: str = "AVRO", **more: Any) -> Any:
        """Register a schema, which must work."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        body = {"schema": text, "schemaType": schema_type, **more}
        status, answer = self.ask("POST", f"/subjects/{quote(subject, safe='')}/versions", body)
        assert status == 200, answer
        return answer
