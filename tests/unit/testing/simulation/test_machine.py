"""A machine does one thing after the other, and nothing after its process has ended."""

from ottla.testing.simulation.simulation import Machine, Simulation


def test_a_process_that_ends_itself_does_nothing_more() -> None:
    simulation = Simulation(1)
    machine = Machine(simulation, "one", "10.0.0.1")
    done: list[int] = []

    def end() -> None:
        machine.call_soon(machine.switch_off)
        machine.call_soon(done.append, 1)

    machine.call_soon(end)
    simulation.run_for(100)
    assert done == []
