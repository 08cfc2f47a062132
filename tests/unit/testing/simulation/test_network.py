"""The simulated network: streams in order, cut anywhere, with back-pressure, ends and breaks."""

import pytest

from ottla.testing.simulation.network import WINDOW_BYTES, SimulatedNetwork
from ottla.testing.simulation.simulation import Machine, Simulation
from ottla.world.network import GONE, READABLE, WRITABLE, Transport

SERVER = "10.0.0.1"
PORT = 9092


class Wire:
    """A connection between two machines, with a reader at the server's end."""

    def __init__(self, seed: int = 1) -> None:
        self.simulation = Simulation(seed)
        self.network = SimulatedNetwork(self.simulation)
        self.server = Machine(self.simulation, "server", SERVER)
        self.client = Machine(self.simulation, "client", "10.0.1.1")
        self.listening = self.network.plug_in(self.server).listen(SERVER, PORT)
        self._of_client = self.network.plug_in(self.client)
        self.ours: Transport
        self.theirs: Transport
        self.pieces: list[bytes] = []
        self.events: list[int] = []
        self.failures: list[OSError] = []

    def connect(self) -> None:
        def accept() -> None:
            self.theirs = self.listening.accept()

        self.listening.start(5, accept)
        self._of_client.connect(SERVER, PORT, lambda one: setattr(self, "ours", one), self.failures.append)
        self.simulation.run_for(10)

    def try_to_connect(self) -> None:
        self._of_client.connect(SERVER, PORT, lambda one: setattr(self, "ours", one), self.failures.append)
        self.simulation.run_for(10_000)

    def read(self) -> None:
        """Have the server read all that comes from now on."""
        buffer = memoryview(bytearray(1 << 20))

        def on_event(events: int) -> None:
            self.events.append(events)
            try:
                self.pieces.append(bytes(buffer[: self.theirs.receive_into(buffer)]))
            except ConnectionError as error:
                self.failures.append(error)
                self.theirs.change(0)
                self.theirs.close()
            else:
                if not self.pieces[-1]:
                    self.theirs.change(0)

        self.theirs.watch(on_event, READABLE)


@pytest.mark.parametrize("seed", range(20))
def test_bytes_arrive_in_order_and_are_cut_now_and_then(seed: int) -> None:
    wire = Wire(seed)
    wire.connect()
    wire.read()
    sent = [b"%d," % number for number in range(300)]
    for one in sent:
        assert wire.ours.send(one) == len(one)
        if seed % 2:
            wire.simulation.run_for(1)
    wire.simulation.run_for(100)
    assert b"".join(wire.pieces) == b"".join(sent)
    if seed % 2:
        assert any(not piece.endswith(b",") for piece in wire.pieces), "none was cut"


def test_a_peer_that_does_not_read_holds_up_the_sender() -> None:
    wire = Wire()
    wire.connect()
    assert wire.ours.send(b"x" * (WINDOW_BYTES + 5)) == WINDOW_BYTES
    with pytest.raises(BlockingIOError):
        wire.ours.send(b"y")
    may_send: list[int] = []

    def on_event(events: int) -> None:
        may_send.append(events)
        wire.ours.change(0)

    wire.ours.watch(on_event, WRITABLE)
    wire.simulation.run_for(100)
    assert may_send == []
    wire.read()
    wire.simulation.run_for(100)
    assert may_send == [WRITABLE]
    assert sum(map(len, wire.pieces)) == WINDOW_BYTES


def test_a_close_is_seen_after_everything_before_it() -> None:
    wire = Wire()
    wire.connect()
    wire.ours.send(b"farewell")
    wire.ours.close()
    with pytest.raises(BlockingIOError):
        wire.theirs.is_closed_by_peer()
    wire.read()
    wire.simulation.run_for(100)
    assert wire.pieces[-1] == b""
    assert b"".join(wire.pieces) == b"farewell"
    assert wire.theirs.is_closed_by_peer()


def test_a_close_before_everything_was_received_breaks_the_connection() -> None:
    wire = Wire()
    wire.connect()
    wire.read()
    wire.theirs.send(b"never received")
    wire.simulation.run_for(10)
    wire.ours.close()
    wire.simulation.run_for(10)
    assert wire.events == [READABLE | GONE]
    assert isinstance(wire.failures[0], ConnectionResetError)


def test_bytes_for_somebody_who_is_gone_break_the_connection() -> None:
    wire = Wire()
    wire.connect()
    wire.theirs.close()
    wire.ours.send(b"hello?")
    wire.simulation.run_for(10)
    with pytest.raises(ConnectionResetError):
        wire.ours.send(b"hello?")


def test_nobody_listens() -> None:
    wire = Wire()
    wire.try_to_connect()
    assert [error.strerror for error in wire.failures] == ["Connection refused"]


def test_a_machine_that_is_off_does_not_answer() -> None:
    wire = Wire()
    wire.network.unplug(SERVER)
    wire.try_to_connect()
    assert [error.strerror for error in wire.failures] == ["Connection timed out"]
    assert wire.simulation.now_us > 3_000_000


def test_an_address_is_taken_once() -> None:
    wire = Wire()
    with pytest.raises(OSError, match="Address already in use"):
        wire.network.plug_in(wire.server).listen(SERVER, PORT)
    wire.listening.close()
    assert wire.network.plug_in(wire.server).listen(SERVER, PORT).address == (SERVER, PORT)


def test_a_power_cut_breaks_connections_and_forgets_what_was_due() -> None:
    wire = Wire()
    wire.connect()
    due: list[str] = []
    wire.server.call_later(1, due.append, "never")
    wire.server.switch_off()
    wire.network.unplug(SERVER)
    wire.simulation.run_for(100)
    assert due == []
    with pytest.raises(ConnectionResetError):
        wire.ours.send(b"x")


def test_what_is_sent_through_a_cut_arrives_when_it_is_mended_in_order() -> None:
    wire = Wire()
    wire.connect()
    wire.read()
    wire.ours.send(b"before,")
    wire.simulation.run_for(10)
    wire.network.cut(wire.client.host, SERVER)
    wire.ours.send(b"first,")
    wire.ours.send(b"second,")
    wire.ours.close()
    wire.simulation.run_for(5_000)
    assert b"".join(wire.pieces) == b"before,"
    wire.network.mend(wire.client.host, SERVER)
    wire.simulation.run_for(10)
    assert b"".join(wire.pieces) == b"before,first,second,"
    assert wire.pieces[-1] == b"", "the end comes last"


def test_a_cut_in_one_direction_lets_the_other_through_but_nobody_connects() -> None:
    wire = Wire()
    wire.connect()
    wire.read()
    wire.network.cut(SERVER, wire.client.host)
    wire.ours.send(b"through")
    wire.simulation.run_for(10)
    assert wire.pieces == [b"through"]
    wire.try_to_connect()
    assert [error.strerror for error in wire.failures] == ["Connection timed out"]


def test_a_link_can_be_slow() -> None:
    wire = Wire()
    wire.connect()
    wire.read()
    wire.network.slow_down(wire.client.host, SERVER, 500_000)
    wire.ours.send(b"late")
    wire.simulation.run_for(499)
    assert wire.pieces == []
    wire.simulation.run_for(10)
    assert wire.pieces == [b"late"]


def test_a_machine_that_goes_in_silence_is_noticed_when_it_is_back() -> None:
    wire = Wire()
    wire.connect()
    events: list[int] = []
    wire.ours.watch(events.append, READABLE)
    wire.network.unplug(SERVER, is_silent=True)
    wire.ours.send(b"anybody there?")
    wire.simulation.run_for(5_000)
    assert events == []
    wire.network.plug_in(wire.server)
    wire.ours.send(b"and now?")
    wire.simulation.run_for(10)
    assert events
    assert events[0] & GONE


def test_a_reset_breaks_both_ends() -> None:
    wire = Wire()
    wire.connect()
    wire.read()
    events: list[int] = []

    def on_event(seen: int) -> None:
        events.append(seen)
        wire.ours.close()

    wire.ours.watch(on_event, READABLE)
    wire.network.reset(SERVER)
    wire.simulation.run_for(10)
    assert events[0] & GONE
    assert [type(error) for error in wire.failures] == [ConnectionResetError]


def test_a_machine_that_is_paused_does_everything_when_it_goes_on() -> None:
    simulation = Simulation(1)
    machine = Machine(simulation, "one", "10.0.0.1")
    done: list[int] = []
    for number in (1, 2, 3):
        machine.call_later(10 * number, done.append, number)
    simulation.run_for(15)
    machine.pause()
    simulation.run_for(1_000)
    assert done == [1]
    machine.resume()
    simulation.run_for(1)
    assert done == [1, 2, 3]
