"""Breaks a node while others use it: kill -9 and start again, or pause for a while."""

import os
import random
import signal
from threading import Event

from tests.support.ottla_node import OttlaNode


class NodeFaults:
    """Faults from a seed, until told to stop. Afterwards the node works."""

    def __init__(self, node: OttlaNode, seed: int, interval_s: float, pause_s: float = 2.0) -> None:
        self._node = node
        self._rng = random.Random(seed)
        self._interval_s = interval_s
        self._pause_s = pause_s
        self.kills = 0
        self.pauses = 0
        self.have_begun = Event()
        """Set after the first of them."""

    def __call__(self, over: Event) -> None:
        # The first comes early: a fast machine may be through before a whole interval has passed.
        wait_s = self._interval_s * self._rng.uniform(0.05, 0.15)
        while not over.wait(wait_s):
            if self._rng.random() < 0.6:
                self.kill()
            else:
                self.pause(over)
            self.have_begun.set()
            wait_s = self._interval_s * self._rng.uniform(0.5, 1.5)

    def kill(self) -> None:
        self._node.kill()
        self._node.start()
        self.kills += 1

    def pause(self, over: Event) -> None:
        os.kill(self._node.pid, signal.SIGSTOP)
        try:
            over.wait(self._pause_s * self._rng.uniform(0.2, 1.5))
        finally:
            os.kill(self._node.pid, signal.SIGCONT)
        self.pauses += 1
