"""A PostgreSQL server of our own, on loopback, for tests. It comes from the packages of the system."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg
import pytest

from ottla.testing.ports import free_port

_PLACES = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
_USER = "postgres"
_PATIENCE_S = 180.0


def _find_programs() -> Path | None:
    if _PLACES:
        return _PLACES[0]
    found = shutil.which("initdb")
    return None if found is None else Path(found).parent


class PostgresServer:
    """A server with an empty database, ready for logical decoding."""

    def __init__(self) -> None:
        programs = _find_programs()
        if programs is None:
            pytest.skip("PostgreSQL is not installed: apt install postgresql")
        self._programs = programs
        self.port = free_port()
        self._directory = Path(tempfile.mkdtemp(prefix="ottla-postgres-"))
        # The server refuses to run as root.
        self._as: dict[str, Any] = {"user": _USER} if os.getuid() == 0 else {}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The address in the form of Java's drivers."""
        return f"jdbc:postgresql://127.0.0.1:{self.port}/postgres?user={_USER}"

    def __enter__(self) -> Self:
        if self._as:
            shutil.chown(self._directory, _USER)
        options = ["-D", str(self._directory / "data"), "-U", _USER, "-A", "trust", "--no-sync"]
        subprocess.run(
            [self._programs / "initdb", *options],
            check=True,
            capture_output=True,
            cwd=self._directory,
            **self._as,
        )
        self.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._end(signal.SIGINT)
        shutil.rmtree(self._directory, ignore_errors=True)

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": self._directory,
            "wal_level": "logical",
            "shared_buffers": "16MB",
            "max_wal_senders": 4,
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with (self._directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", str(self._directory / "data"), *options],
                stdout=log,
                stderr=log,
                cwd=self._directory,
                **self._as,
            )
        deadline_s = time.monotonic() + _PATIENCE_S
        while True:
            try:
                self.connect().close()
            except psycopg.OperationalError:
                assert time.monotonic() < deadline_s, (self._directory / "log").read_text()
                time.sleep(0.1)
            else:
                return

    def kill(self) -> None:
        """Stop it at once, without a checkpoint, as a crash would."""
        self._end(signal.SIGQUIT)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            process, self._process = self._process, None
            process.send_signal(number)
            process.wait(_PATIENCE_S)

    def connect(self) -> "psycopg.Connection[Any]":
        """Connect, with a transaction for each statement."""
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user=_USER, dbname="postgres", autocommit=True
        )
