"""The most expensive requests that each API allows, while a polite client measures what it has to wait.

    python -m benchmarks.expensive [--sizes 65536,1048576,8388608] [--api METADATA ...] [--without-rights]

Each array of each request is filled up to a size: with elements that are as small as possible, with elements
that name what exists, and with elements that have a name each. The node runs in a process of its own. For
each request the table shows what became of it, the node's CPU seconds, how far its memory grew, and how long
another client, which produces one small batch after the other, waited at most and in the worst hundredth of
its requests.

With `--without-rights` the requests come from a user who may do nothing but what the other client does, at a
node with ten thousand access rules.
"""

import argparse
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.data_plane import batch_of, create_topic, produce
from tests.support.ottla_node import OttlaNode
from tests.support.plain_client import PlainClient

from ottla.broker.serving.routes import PLAIN_FRAME_BYTES_MAX
from ottla.broker.serving.served_apis import SERVED
from ottla.model.uuid import Uuid
from ottla.security.principal import ANONYMOUS
from ottla.security.rights import Operation, ResourceType
from ottla.security.standard_authorizer import CLASS_NAME
from ottla.wire.apis import Api, ApiKey, api_of
from ottla.wire.declare import replace
from ottla.wire.framing import encode_request
from ottla.wire.layout import Field, empty, layout_of
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest

SIZES = (65_536, 1 << 20, PLAIN_FRAME_BYTES_MAX - 1024)
PRODUCE_SIZES = (1 << 20, 16 << 20, (100 << 20) - 1024)
TOPIC = "existing"
TIMEOUT_S = 300
RULES = 10_000
RULES_AT_ONCE = 2_500
KINDS = ("empty", "known", "distinct")
"""What the elements of an array are: as small as possible, what exists, or each with a name of its own."""
_KNOWN: dict[str, Any] = {
    "name": TOPIC,
    "topic": TOPIC,
    "topic_name": TOPIC,
    "topics": TOPIC,
    "resource_name": TOPIC,
    "resource_type": 2,
    "group_id": "group",
    "groups": "group",
    "key": "group",
    "coordinator_keys": "group",
    "entity_type": "user",
    "entity_name": "alice",
    "user": "alice",
    "mechanism": 1,
    "iterations": 4096,
    "salt": b"salt",
    "salted_password": b"password",
    "partition_max_bytes": 1 << 20,
    "timestamp": 1,
    "transaction_timeout_ms": 60_000,
    "max_wait_ms": 100,
    "min_bytes": 1,
    "max_bytes": 1 << 26,
    "session_epoch": 0,
    "replica_id": -1,
}
"""What exists, by the names of fields. All else is at its default, which mostly means nothing."""


class Expensive(NamedTuple):
    """A request as bytes, and what it is."""

    api: ApiKey
    what: str
    frame: bytes


def expensive_requests(
    apis: Sequence[ApiKey], sizes: Sequence[int], produce_sizes: Sequence[int], topic_id: Uuid
) -> Iterator[Expensive]:
    """Give each API's requests: every array as long as each size allows, of empty and of known elements."""
    for key in apis:
        api = api_of(key)
        version = api.stable_versions.last
        for path in array_paths(api.request, version):
            for size in produce_sizes if key is ApiKey.PRODUCE else sizes:
                for kind in KINDS:
                    frame = fill(api, version, path, size, kind, topic_id)
                    if frame is not None:
                        what = f"{'.'.join(field.name for field in path)} {kind}, {_in_mib(len(frame))}"
                        yield Expensive(key, what, frame)


def array_paths(cls: type[Any], version: int) -> Iterator[tuple[Field, ...]]:
    for field in layout_of(cls):
        if version not in field.versions:
            continue
        if field.is_array:
            yield (field,)
        if field.struct is not None:
            for inner in array_paths(field.struct, version):
                yield (field, *inner)


def fill(
    api: Api, version: int, path: tuple[Field, ...], size: int, kind: str, topic_id: Uuid
) -> bytes | None:
    """Encode a request whose array at the end of `path` is as long as fits."""

    def encoded(count: int) -> bytes:
        return encode_request(_nest(api.request, path, count, version, kind, topic_id), api, version, 1, "e")

    base, more = len(encoded(1)), len(encoded(101))
    each = max((more - base) / 100, 1.0)
    if kind == "distinct":
        # The first hundred numbers have fewer digits than most.
        each += 3
    return encoded(max(1, int((size - base) / each)))


def _nest(
    cls: type[Any], path: tuple[Field, ...], count: int, version: int, kind: str, topic_id: Uuid
) -> Any:
    is_known = kind == "known"
    message = _sample(cls, version, is_known, topic_id)
    field, *rest = path
    inner: Any
    if rest:
        assert field.struct is not None
        inner = _nest(field.struct, tuple(rest), count, version, kind, topic_id)
        return replace(message, **{field.name: (inner,) if field.is_array else inner})
    if field.struct is not None:
        inner = _sample(field.struct, version, is_known, topic_id)
    else:
        inner = {"string": "", "uuid": topic_id}.get(field.kind, 0)
        if is_known and field.kind == "string":
            inner = _KNOWN.get(field.name, "a")
    elements = _distinct(field, inner, count, version) if kind == "distinct" else (inner,) * count
    return replace(message, **{field.name: elements})


def _distinct(field: Field, inner: Any, count: int, version: int) -> tuple[Any, ...]:
    """Return elements that differ in their first string or id, or else in nothing."""
    make: dict[str, Callable[[int], Any]] = {
        "string": lambda number: f"{number:x}",
        "uuid": lambda number: Uuid(number.to_bytes(16)),
    }
    if field.struct is None:
        named = make.get(field.kind)
        return (inner,) * count if named is None else tuple(map(named, range(count)))
    for one in layout_of(field.struct):
        if version in one.versions and one.kind in make and not one.is_array and one.struct is None:
            return tuple(replace(inner, **{one.name: make[one.kind](number)}) for number in range(count))
    return (inner,) * count


def _sample(cls: type[Any], version: int, is_known: bool, topic_id: Uuid) -> Any:
    made = empty(cls)
    changes: dict[str, Any] = {}
    for field in layout_of(cls):
        if version not in field.versions:
            continue
        if field.kind == "records":
            changes[field.name] = bytes(batch_of(b"v", key=b"k")) if is_known else None
        elif field.name == "acks":
            # There is no answer to wait for otherwise.
            changes[field.name] = -1
        elif not is_known or field.is_array or field.struct is not None:
            continue
        elif field.kind == "uuid":
            changes[field.name] = topic_id
        elif field.name in _KNOWN and _fits(field, _KNOWN[field.name]):
            changes[field.name] = _KNOWN[field.name]
    return replace(made, **changes) if changes else made


def _fits(field: Field, value: Any) -> bool:
    kinds = {"string": str, "bytes": bytes}
    return isinstance(value, kinds.get(field.kind, int))


def _in_mib(size: int) -> str:
    return f"{size / 1048576:.2g} MiB"


class Polite:
    """A client that produces one small batch after the other, and notes how long each takes."""

    def __init__(self, bootstrap: str) -> None:
        self._client = PlainClient(bootstrap, TIMEOUT_S)
        self._stopped = threading.Event()
        self.took_ms: list[float] = []
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Polite":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        self._client.close()

    def _run(self) -> None:
        while not self._stopped.is_set():
            started = time.perf_counter()
            produce(self._client, "polite", batch_of(b"v"), acks=1)
            self.took_ms.append((time.perf_counter() - started) * 1000)
            self._stopped.wait(0.001)

    def p99_ms(self) -> float:
        """Return what the worst hundredth of its requests waited at least."""
        return sorted(self.took_ms)[int(len(self.took_ms) * 0.99)]


class Measured(NamedTuple):
    """What one request did to the node."""

    request: Expensive
    outcome: str
    seconds: float
    cpu_seconds: float
    grown_mib: float
    p99_ms: float
    max_ms: float


def measure(node: OttlaNode, request: Expensive) -> Measured:
    """Send a request while the polite client measures."""
    pid = node.pid
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    before_kib, before_cpu, started = _status_kib(pid, "VmRSS"), _cpu_seconds(pid), time.perf_counter()
    with Polite(node.bootstrap) as polite:
        outcome = _send(node.port, request.frame)
    seconds = time.perf_counter() - started
    return Measured(
        request,
        outcome,
        seconds,
        _cpu_seconds(pid) - before_cpu,
        (_status_kib(pid, "VmHWM") - before_kib) / 1024,
        polite.p99_ms(),
        max(polite.took_ms),
    )


def _send(port: int, frame: bytes) -> str:
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as client:
        try:
            client.sendall(frame)
            size = int.from_bytes(_read(client, 4))
            left = size
            while left:
                data = client.recv(min(left, 1 << 20))
                if not data:
                    return "closed in the middle"
                left -= len(data)
        except (ConnectionError, EOFError):
            return "closed"
        except TimeoutError:
            return "NO ANSWER"
    return f"answered, {_in_mib(size)}"


def _read(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = client.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _status_kib(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise AssertionError(f"the kernel tells no {name}")


def _print_row(row: Measured, show: Callable[[str], None] = print) -> None:
    show(
        f"| {row.request.api.name} | {row.request.what} | {row.outcome} | {row.cpu_seconds:.2f} | "
        f"{row.grown_mib:.0f} | {row.p99_ms:.0f} | {row.max_ms:.0f} |"
    )


@contextmanager
def prepared_node(root: Path, *, without_rights: bool) -> Iterator[tuple[OttlaNode, Uuid]]:
    """Give a node with both topics, and the id of the one that requests name."""
    boss = {"authorizer.class.name": CLASS_NAME, "super.users": str(ANONYMOUS)} if without_rights else {}
    with OttlaNode(root, boss) as node:
        with PlainClient(node.bootstrap) as client:
            create_topic(client, "polite")
            topic_id = create_topic(client, TOPIC)
            if without_rights:
                _make_rules(client)
        if not without_rights:
            yield node, topic_id
    if without_rights:
        # Everybody here is anonymous. From now on that is nobody in particular.
        with OttlaNode(root, {**boss, "super.users": "User:boss"}) as node:
            yield node, topic_id


def _make_rules(client: PlainClient) -> None:
    client.ask(CreateAclsRequest(creations=(_may("polite", str(ANONYMOUS), Operation.WRITE),)))
    for start in range(0, RULES, RULES_AT_ONCE):
        rules = (
            _may(f"topic-{number}", f"User:{number % 100}", Operation.READ)
            for number in range(start, start + RULES_AT_ONCE)
        )
        client.ask(CreateAclsRequest(creations=tuple(rules)))


def _may(topic: str, principal: str, operation: Operation) -> AclCreation:
    return AclCreation(
        resource_type=ResourceType.TOPIC,
        resource_name=topic,
        principal=principal,
        host="*",
        operation=operation,
        permission_type=3,
    )


def main() -> None:
    """Print the table, the worst rows of each API or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--produce-sizes", default=",".join(map(str, PRODUCE_SIZES)))
    parser.add_argument("--api", nargs="*", default=[])
    parser.add_argument("--all", action="store_true", help="print each row, not the worst of each API")
    parser.add_argument("--without-rights", action="store_true", help="ask as a user who has no rights")
    asked = parser.parse_args()
    apis = [ApiKey[name] for name in asked.api] or sorted(SERVED)
    sizes, produce_sizes = (
        [int(size) for size in text.split(",")] for text in (asked.sizes, asked.produce_sizes)
    )
    print("| API | request | outcome | CPU s | memory MiB | polite p99 ms | polite max ms |")
    print("|---|---|---|---|---|---|---|", flush=True)
    with (
        tempfile.TemporaryDirectory() as root,
        prepared_node(Path(root), without_rights=asked.without_rights) as (node, topic_id),
    ):
        for api in apis:
            rows = [measure(node, one) for one in expensive_requests([api], sizes, produce_sizes, topic_id)]
            rows.sort(key=lambda row: row.max_ms, reverse=True)
            for row in rows if asked.all else rows[:1]:
                _print_row(row, lambda text: print(text, flush=True))


if __name__ == "__main__":
    main()
