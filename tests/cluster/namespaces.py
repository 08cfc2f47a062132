"""Network namespaces for the nodes of a campaign: each node has a network of its own, all on one bridge.

    with Namespaces(3) as network:
        network.command_in(1)         what to put before a command to run it on node 1
        network.cut(1, 2)             packets from node 1 to node 2 are lost, until `mend_all`
        network.unplug(1)             all packets of node 1 are lost, until `plug_in`

Clients are on the bridge, in the namespace `network.hub`. A packet is lost by a route that leads nowhere: a
packet filter is not needed. It takes root, and a kernel that allows it: `why_not` says what is missing.
"""

import os
import shutil
import subprocess
from typing import Final, Self

CLIENTS: Final = "10.77.0.100"


def address_of(node: int) -> str:
    """Return the address of a node. They are counted from 1."""
    return f"10.77.0.{node}"


def why_not() -> str | None:
    """Return why namespaces cannot be made here, or None if they can."""
    for program in ("ip", "nsenter", "unshare"):
        if shutil.which(program) is None:
            return f"the command {program} is missing"
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    try:
        with Namespaces(1):
            return None
    except NamespacesFailed as error:
        return str(error)


class NamespacesFailed(Exception):
    """A command for networks failed."""


class Namespaces:
    """The networks of some nodes and of their clients."""

    def __init__(self, nodes: int, prefix: str | None = None) -> None:
        """With a `prefix` they are those that another process has made."""
        self._nodes = range(1, nodes + 1)
        self.prefix = f"ottla-{os.getpid()}" if prefix is None else prefix
        self.hub = f"{self.prefix}-hub"
        self._cuts: set[tuple[int, int]] = set()

    def __enter__(self) -> Self:
        try:
            self._make()
        except NamespacesFailed:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        for name in (self.hub, *map(self._name, self._nodes)):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    def command_in(self, node: int) -> list[str]:
        """Return what to put before a command that is to run on a node.

        `ip netns exec` would give it mounts of its own, too, so that no disk could be unmounted while any
        node runs.
        """
        return ["nsenter", f"--net=/run/netns/{self._name(node)}"]

    def cut(self, source: int, target: int) -> None:
        """Lose packets from one node to another."""
        if (source, target) not in self._cuts:
            self._cuts.add((source, target))
            self._route("add", source, target)

    def unplug(self, node: int) -> None:
        """Lose all packets of a node."""
        _ip("-n", self.hub, "link", "set", f"port{node}", "down")

    def plug_in(self, node: int) -> None:
        """Let the packets of a node through again."""
        _ip("-n", self.hub, "link", "set", f"port{node}", "up")

    def mend_all(self) -> None:
        """Let all packets through."""
        for source, target in sorted(self._cuts):
            self._route("del", source, target)
        self._cuts.clear()

    def _route(self, verb: str, source: int, target: int) -> None:
        _ip("-n", self._name(source), "route", verb, "blackhole", f"{address_of(target)}/32")

    def _name(self, node: int) -> str:
        return f"{self.prefix}-{node}"

    def _make(self) -> None:
        _ip("netns", "add", self.hub)
        _ip("-n", self.hub, "link", "set", "lo", "up")
        _ip("-n", self.hub, "link", "add", "bridge", "type", "bridge")
        _ip("-n", self.hub, "addr", "add", f"{CLIENTS}/24", "dev", "bridge")
        _ip("-n", self.hub, "link", "set", "bridge", "up")
        for node in self._nodes:
            name, port = self._name(node), f"port{node}"
            _ip("netns", "add", name)
            _ip("link", "add", "eth0", "netns", name, "type", "veth", "peer", "name", port, "netns", self.hub)
            _ip("-n", self.hub, "link", "set", port, "master", "bridge", "up")
            _ip("-n", name, "addr", "add", f"{address_of(node)}/24", "dev", "eth0")
            _ip("-n", name, "link", "set", "eth0", "up")
            _ip("-n", name, "link", "set", "lo", "up")
            # A process that was killed says so to those it talked to. If its machine is unplugged, the kernel
            # must not say it for long.
            _run(*self.command_in(node), "sysctl", "-q", "-w", "net.ipv4.tcp_orphan_retries=1")


def _ip(*arguments: str) -> None:
    _run("ip", *arguments)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NamespacesFailed(f"{' '.join(command)}: {done.stderr.strip()}")
