"""`ottla up --nodes N`: several nodes on this machine, each in a process of its own, kept running.

    DIR/node-1, DIR/node-2, ...                        the data of each node
    DIR/node-1.properties, DIR/node-2.properties, ...  its configuration, written at each start

The first three nodes are the controllers, too. With two nodes, only the first is: if both were, the cluster
would stop with either of them. The quorum is a static one, so the ports may be others at the next start. A
node that dies is started again, after a pause that grows if it dies again soon.
"""

import asyncio
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from ottla.cli.failure import Failure
from ottla.runtime.signals import stop_signals

CONTROLLERS_MAX: Final = 3
CONTROLLER_PORTS_AFTER: Final = 1000
"""How far the ports of the controllers are from those of the brokers."""
PORT_MAX: Final = 65535
PAUSE_S_MIN: Final = 0.5
PAUSE_S_MAX: Final = 30.0
SETTLED_S: Final = 60.0
"""A node that has served for so long did not die of what it died of last time."""
STOP_S_MAX: Final = 90.0
OF_ONE_NODE: Final = frozenset(
    (
        "node.id",
        "broker.id",
        "process.roles",
        "listeners",
        "advertised.listeners",
        "controller.listener.names",
        "controller.quorum.voters",
        "controller.quorum.bootstrap.servers",
        "log.dir",
        "log.dirs",
        "metadata.log.dir",
    )
)
"""What each of several nodes has for itself."""


class LocalNode(NamedTuple):
    """One of the nodes."""

    node_id: int
    port: int
    controller_port: int | None
    data: Path

    @property
    def config_file(self) -> Path:
        return self.data.with_name(f"{self.data.name}.properties")


class NodeOutput(NamedTuple):
    """What the nodes write, as options of each."""

    log_format: str
    log_level: str


def plan_nodes(
    count: int, port: int, directory: Path, controller_port: Callable[[int], int] | None = None
) -> list[LocalNode]:
    """Say where each node is and listens. `controller_port` says which port a node has for controllers."""
    controllers = 1 if count < CONTROLLERS_MAX else CONTROLLERS_MAX
    shift = CONTROLLER_PORTS_AFTER
    if port + shift + controllers > PORT_MAX:
        shift = -shift
    find_port = controller_port or (lambda own: own + shift)
    if port == 0 or port + count - 1 > PORT_MAX:
        raise Failure(f"{count} nodes need {count} ports from --port on: choose one from 1 to 64000")
    return [
        LocalNode(
            number,
            port + number - 1,
            find_port(port + number - 1) if number <= controllers else None,
            directory / f"node-{number}",
        )
        for number in range(1, count + 1)
    ]


def node_properties(node: LocalNode, nodes: Sequence[LocalNode], host: str) -> dict[str, str]:
    """Return the configuration of a node."""
    name = f"[{host}]" if ":" in host else host
    replicas = min(len(nodes), 3)
    listeners = f"PLAINTEXT://{name}:{node.port}"
    roles = "broker"
    if node.controller_port is not None:
        listeners += f",CONTROLLER://{name}:{node.controller_port}"
        roles = "broker,controller"
    voters = [
        f"{one.node_id}@{name}:{one.controller_port}" for one in nodes if one.controller_port is not None
    ]
    return {
        "process.roles": roles,
        "node.id": str(node.node_id),
        "listeners": listeners,
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": ",".join(voters),
        "log.dirs": str(node.data.absolute()),
        "default.replication.factor": str(replicas),
        "min.insync.replicas": str(max(replicas - 1, 1)),
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": str(max(replicas - 1, 1)),
        "share.coordinator.state.topic.replication.factor": str(replicas),
        "share.coordinator.state.topic.min.isr": str(max(replicas - 1, 1)),
    }


def read_shared_settings(config_file: Path | None) -> dict[str, str]:
    """Return what a file says for all nodes. It cannot say what is different for each of them."""
    if config_file is None:
        return {}
    from ottla.model.properties import MalformedProperties, iter_properties

    try:
        settings = {item.key: item.value for item in iter_properties(config_file.read_bytes())}
    except OSError as error:
        raise Failure(f"cannot read {config_file}: {error.strerror}") from error
    except MalformedProperties as error:
        raise Failure(f"cannot use {config_file}: {error}") from error
    if own := sorted(settings.keys() & OF_ONE_NODE):
        raise Failure(
            f"{config_file} says what --nodes decides for each node: remove {', '.join(own)}, "
            "or run each node with a file of its own"
        )
    return settings


def write_properties(
    nodes: Sequence[LocalNode],
    host: str,
    settings: Mapping[str, str],
    own_settings: Callable[[LocalNode], Mapping[str, str]] = lambda _: {},
) -> None:
    """Write the configuration files. `settings` hold for all nodes, and `own_settings` for one."""
    from ottla.model.properties import encode_settings
    from ottla.runtime.private_files import make_private_directory, write_private

    for node in nodes:
        make_private_directory(node.data.parent)
        properties = {**node_properties(node, nodes, host), **own_settings(node), **settings}
        metrics_port = int(settings.get("ottla.metrics.port", "-1") or "-1")
        if metrics_port > 0:
            properties["ottla.metrics.port"] = str(metrics_port + node.node_id - 1)
        # The settings may have passwords in them.
        write_private(node.config_file, encode_settings(properties, "Written by `ottla up --nodes`."))


def check_unused(nodes: Sequence[LocalNode]) -> None:
    """Refuse to start anything if one of the directories is in use: the others would go on alone."""
    from ottla.runtime.file_locks import RealLock
    from ottla.storage.names import LOCK_FILE
    from ottla.world.disk import DiskError, Reason

    for node in nodes:
        path = node.data / LOCK_FILE
        if not path.exists():
            continue
        try:
            RealLock(str(path)).release()
        except DiskError as error:
            # What else may be wrong, the start of the node will say.
            if error.reason is Reason.LOCKED:
                raise Failure(
                    f"{error.detail} is using {node.data}: stop that first; no node was started"
                ) from error


def find_cluster_id(nodes: Sequence[LocalNode]) -> str:
    """Return the id of the cluster that the directories belong to, or a new one if they are new."""
    from ottla.quorum.random_id import random_id
    from ottla.storage.file_errors import CorruptFile
    from ottla.storage.log_dirs.meta_properties import FILE, decode_meta_properties

    for node in nodes:
        path = node.data / FILE
        if path.exists():
            try:
                meta = decode_meta_properties(path.read_bytes())
            except CorruptFile as error:
                raise Failure(f"cannot use {path}: {error}") from error
            if meta.cluster_id is not None:
                return meta.cluster_id
    return str(random_id(random.SystemRandom()))


def run_nodes(
    nodes: Sequence[LocalNode],
    cluster_id: str,
    options: Sequence[str],
    output: NodeOutput,
    ready: Callable[[], None],
) -> None:
    """Run the nodes until SIGTERM or SIGINT. `ready` is called when all of them serve."""
    asyncio.run(_Supervisor(nodes, cluster_id, options, output, ready).run())


class _Supervisor:
    def __init__(
        self,
        nodes: Sequence[LocalNode],
        cluster_id: str,
        options: Sequence[str],
        output: NodeOutput,
        ready: Callable[[], None],
    ) -> None:
        self._nodes = nodes
        self._cluster_id = cluster_id
        self._options = options
        self._output = output
        self._ready = ready
        self._serving: set[int] = set()
        self._was_ready = False
        self._stop = asyncio.Event()
        self._processes: dict[int, asyncio.subprocess.Process] = {}
        self._last_lines: dict[int, str] = {}
        self._failure: str | None = None

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for number in stop_signals():
            loop.add_signal_handler(number, self._asked_to_stop, number)
        await asyncio.gather(*(self._keep_running(node) for node in self._nodes))
        if self._failure is not None:
            raise Failure(self._failure)

    def _asked_to_stop(self, number: signal.Signals) -> None:
        if self._stop.is_set() and number != signal.SIGHUP:
            # Somebody has lost patience.
            self._signal_all(signal.SIGKILL)
        self._begin_stop()

    def _begin_stop(self) -> None:
        self._stop.set()
        # All at once: while the others are still there, each can leave the cluster in order.
        self._signal_all(signal.SIGTERM)

    def _signal_all(self, number: signal.Signals) -> None:
        for process in self._processes.values():
            if process.returncode is None:
                process.send_signal(number)

    async def _keep_running(self, node: LocalNode) -> None:
        pause_s = PAUSE_S_MIN
        while not self._stop.is_set():
            started = time.monotonic()
            code = await self._run_once(node)
            if self._stop.is_set():
                return
            if not self._was_ready:
                said = self._last_lines.get(node.node_id, "").removeprefix("Error: ")
                self._failure = f"node {node.node_id} did not start: {said or f'it ended with code {code}'}"
                self._begin_stop()
                return
            if time.monotonic() - started > SETTLED_S:
                pause_s = PAUSE_S_MIN
            self._say(node, f"ended with code {code}, starting again in {pause_s:g} s")
            try:
                await asyncio.wait_for(self._stop.wait(), pause_s)
            except TimeoutError:
                pause_s = min(2 * pause_s, PAUSE_S_MAX)

    async def _run_once(self, node: LocalNode) -> int:
        process = await asyncio.create_subprocess_exec(
            *self._command(node),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            # Ctrl-C is for the supervisor, which stops the nodes in order.
            start_new_session=True,
            preexec_fn=_end_with_parent,
            limit=1 << 20,
        )
        self._processes[node.node_id] = process
        if self._stop.is_set():
            process.terminate()
        assert process.stdout is not None
        assert process.stderr is not None
        reading = asyncio.gather(
            self._read_stdout(node, process.stdout), self._read_log(node, process.stderr)
        )
        code = await self._wait_for(process)
        await reading
        self._serving.discard(node.node_id)
        return code

    async def _wait_for(self, process: asyncio.subprocess.Process) -> int:
        waiting = asyncio.ensure_future(process.wait())
        stopping = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait((waiting, stopping), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not waiting.done():
            await asyncio.wait((waiting,), timeout=STOP_S_MAX)
            if not waiting.done():
                process.kill()
        return await waiting

    def _command(self, node: LocalNode) -> list[str]:
        return [
            sys.executable,
            "-m",
            "ottla",
            "up",
            "--config",
            str(node.config_file),
            "--cluster-id",
            self._cluster_id,
            "--log-format",
            self._output.log_format,
            "--log-level",
            self._output.log_level,
            *self._options,
        ]

    async def _read_stdout(self, node: LocalNode, stream: asyncio.StreamReader) -> None:
        async for line in stream:
            if line.startswith(b"ready "):
                self._serving.add(node.node_id)
                if self._was_ready:
                    self._say(node, "serves again")
                elif len(self._serving) == len(self._nodes):
                    self._was_ready = True
                    self._ready()

    async def _read_log(self, node: LocalNode, stream: asyncio.StreamReader) -> None:
        async for line in stream:
            text = line.decode(errors="replace").rstrip("\n")
            self._last_lines[node.node_id] = text
            self._write(node, text)

    def _say(self, node: LocalNode, what: str) -> None:
        if self._output.log_format == "json":
            self._write(
                node, f'{{"level": "WARNING", "logger": "ottla.nodes", "message": "the node {what}"}}'
            )
        else:
            self._write(node, f"the node {what}")

    def _write(self, node: LocalNode, text: str) -> None:
        is_json = self._output.log_format == "json" and text.startswith("{")
        line = f'{{"node": {node.node_id}, {text[1:]}' if is_json else f"[{node.node_id}] {text}"
        # The terminal may be closed: the nodes stop in order even so.
        with suppress(OSError):
            print(line, file=sys.stderr, flush=True)


def _end_with_parent() -> None:
    """Have a node stopped when the supervisor is killed, where the system can do that."""
    if sys.platform != "linux":
        return
    import ctypes

    parent_death_signal = 1
    ctypes.CDLL(None).prctl(parent_death_signal, signal.SIGTERM)
    if os.getppid() == 1:
        # The supervisor was gone before it could be asked for.
        os.kill(os.getpid(), signal.SIGTERM)
