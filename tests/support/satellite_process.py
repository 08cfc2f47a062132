"""A server of HTTP beside a cluster, in a process of its own, on loopback, for tests."""

import json
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.ottla_node import START_TIMEOUT_S, STOP_TIMEOUT_S, ottla_command

from ottla.testing.ports import free_port


class SatelliteProcess:
    """A command of `ottla` that serves HTTP, and prints its URL when it is ready."""

    def __init__(
        self,
        command: str,
        bootstrap: str,
        *arguments: str,
        port: int | None = None,
        scheme: str = "http",
        log: Path | None = None,
        opener: urllib.request.OpenerDirector | None = None,
    ) -> None:
        self.port = free_port() if port is None else port
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        self._command = ottla_command(command, "--bootstrap", bootstrap, "--port", str(self.port), *arguments)
        self._log = log
        self._opener = opener
        self._process: subprocess.Popen[str] | None = None

    @property
    def pid(self) -> int:
        """The id of the process."""
        assert self._process is not None, "it runs"
        return self._process.pid

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start it, and wait until it is ready."""
        if self._log is None:
            process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        else:
            with self._log.open("ab") as log:
                process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=log, text=True)
        self._process = process
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        assert line == f"ready {self.url}", f"it said {line!r} within {START_TIMEOUT_S} s"

    def stop(self) -> None:
        """Stop it in order."""
        if self._process is not None:
            self._process.terminate()
            self._end()

    def kill(self) -> None:
        """Kill it, as a crash would."""
        assert self._process is not None
        self._process.kill()
        self._end()

    def _end(self) -> None:
        assert self._process is not None
        process, self._process = self._process, None
        process.wait(STOP_TIMEOUT_S * 2)
        assert process.stdout is not None
        process.stdout.close()

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Send a request. Returns the status and the answer."""
        return _ask(self._opener or _PLAIN, self.url, method, path, body, headers)


_PLAIN = urllib.request.build_opener()


def ask(url: str, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    """Send a request. Returns the status and the answer."""
    return _ask(_PLAIN, url, method, path, body, headers)


def _ask(
    opener: urllib.request.OpenerDirector,
    url: str,
    method: str,
    path: str,
    body: Any,
    headers: dict[str, str],
) -> tuple[int, Any]:
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {
        "Content-Type": "application/json",
        **{name.replace("_", "-"): text for name, text in headers.items()},
    }
    request = urllib.request.Request(url + path, data, named, method=method)
    try:
        with opener.open(request, timeout=120) as answer:
            return answer.status, _content(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, _content(error.read())


def _content(data: bytes) -> Any:
    try:
        return json.loads(data) if data else None
    except ValueError:
        return data.decode()
