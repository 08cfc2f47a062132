"""Typing commands, in this process."""

import json
from typing import Any, NamedTuple

from click.testing import CliRunner

from ottla.cli.main import main


class Typed(NamedTuple):
    """What came of a command."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """The output, as a program reads it."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """The output, an object a line."""
        return [json.loads(line) for line in self.out.splitlines()]


def run(*words: str, bootstrap: str | None = None, stdin: str | None = None, **variables: str) -> Typed:
    """Type `ottla` and the words. Nothing of the user's own environment or files is used."""
    environment: dict[str, str | None] = {"OTTLA_CONFIG": "/dev/null", **variables}
    if bootstrap is not None:
        environment["OTTLA_BOOTSTRAP"] = bootstrap
    result = CliRunner().invoke(main, list(words), input=stdin, env=environment)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Typed(result.exit_code, result.stdout, result.stderr)


def succeed(*words: str, bootstrap: str | None = None, stdin: str | None = None, **variables: str) -> Typed:
    """Type a command that works."""
    typed = run(*words, bootstrap=bootstrap, stdin=stdin, **variables)
    assert typed.code == 0, typed.err
    return typed


def fail(*words: str, bootstrap: str | None = None, stdin: str | None = None, **variables: str) -> str:
    """Type a command that fails, and return the one sentence it says."""
    typed = run(*words, bootstrap=bootstrap, stdin=stdin, **variables)
    assert typed.code == 1, (typed.code, typed.out, typed.err)
    assert typed.err.startswith("Error: ")
    assert "Traceback" not in typed.err
    return typed.err.removeprefix("Error: ").strip()
