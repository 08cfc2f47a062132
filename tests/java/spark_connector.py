"""The jars of Spark's own Kafka connector, for tests and benchmarks that hold ours against it."""

import fcntl
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
LIBS = HERE.parent.parent / "target" / "spark-connector"


class NoConnector(Exception):
    """Maven is not here, or has not all jars."""


def connector_jars() -> str:
    """Return the jars as `spark.jars` takes them, fetched if need be."""
    if shutil.which("mvn") is None:
        raise NoConnector("mvn is not installed")
    LIBS.parent.mkdir(exist_ok=True)
    with (LIBS.parent / "spark-connector.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        complete = LIBS / ".complete"
        if not complete.exists():
            try:
                subprocess.run(
                    [
                        "mvn", "-q", "-B", "-f", str(HERE / "spark" / "pom.xml"),
                        "dependency:copy-dependencies", f"-DoutputDirectory={LIBS}",
                    ],
                    check=True, capture_output=True, text=True,
                )  # fmt: skip
            except subprocess.CalledProcessError as error:
                raise NoConnector(
                    f"Maven could not fetch the jars ({error.stdout.strip()[-300:]})"
                ) from error
            complete.touch()
    return ",".join(str(path) for path in sorted(LIBS.glob("*.jar")))
