"""Apache Kafka's own classes, for tests that hold our bytes against them.

Maven fetches the jars that `pom.xml` names into `target/java-libs`, once. Java programs beside this file
are compiled into `target/java-classes`. Test processes run side by side, so a file lock guards both.

Without Java a test that needs it is skipped, and pytest's summary says so; where `CI=true`, it fails.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NoReturn

import pytest

HERE = Path(__file__).parent
TARGET = HERE.parent.parent / "target"
LIBS = TARGET / "java-libs"
CLASSES = TARGET / "java-classes"
POM = HERE / "pom.xml"

QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
"""A JVM that lives for seconds is better off without its second compiler and its parallel collector."""


@cache
def java_classpath() -> str:
    """Return the class path of Apache Kafka, fetched if need be. Skips or fails the test without Java."""
    need("java", "javac", "mvn")
    stamp = LIBS / f"{_digest(POM)}.complete"
    with _locked("java-libs"):
        if not stamp.exists():
            _fetch_jars()
            stamp.touch()
    return f"{LIBS}/*"


def need(*programs: str) -> None:
    """Skip or fail the test unless these programs are installed."""
    for program in programs:
        if shutil.which(program) is None:
            missing(f"{program} is not installed")


@cache
def compiled(*sources: str, libraries: str | None = None) -> str:
    """Compile programs that lie beside this file. Return the class path that has them and their libraries.

    These are Apache Kafka's, unless others are given. What was compiled once is kept.
    """
    need("java", "javac")
    paths = [HERE / source for source in sources]
    output = CLASSES / f"{paths[0].stem}-{_digest(*paths, POM)}"
    libraries = libraries or java_classpath()
    with _locked("java-classes"):
        if not output.exists():
            unfinished = output.with_suffix(".unfinished")
            _run("javac", "-proc:none", "-nowarn", "-cp", libraries, "-d", str(unfinished), *map(str, paths))
            unfinished.rename(output)
    return f"{output}:{libraries}"


def java_command(class_path: str, main_class: str, *arguments: str) -> list[str]:
    """Return the command line that runs a Java class."""
    return ["java", *QUICK_START, "-cp", class_path, main_class, *arguments]


def missing(what: str) -> NoReturn:
    """Skip the test, or fail it where everything must be there."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what}, and CI=true asks for it", pytrace=False)
    pytest.skip(f"{what}: not compared with Apache Kafka's classes")


def _fetch_jars() -> None:
    shutil.rmtree(LIBS, ignore_errors=True)
    try:
        _run(
            "mvn", "-q", "-B", "-f", str(POM), "dependency:copy-dependencies",
            f"-DoutputDirectory={LIBS}", "-DincludeScope=runtime",
        )  # fmt: skip
    except subprocess.CalledProcessError as error:
        missing(f"Maven could not fetch the jars ({error.stdout.strip()[-500:]})")


def _run(*command: str) -> None:
    subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def _digest(*paths: Path) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:16]


@contextmanager
def _locked(name: str) -> Iterator[None]:
    TARGET.mkdir(exist_ok=True)
    with (TARGET / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
