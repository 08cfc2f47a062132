"""What is to be done at the end of a turn is done in order, and an error stops nobody else."""

from ottla.broker.coordinators.turn_end import TurnEnd
from ottla.runtime.loop_scheduler import LoopScheduler
from ottla.runtime.poller import ServingLoop


def test_all_is_done_in_order_when_the_turn_ends() -> None:
    loop = ServingLoop()
    errors: list[str] = []
    loop.set_exception_handler(lambda _loop, context: errors.append(str(context["exception"])))
    turn_end = TurnEnd(LoopScheduler(loop))
    done: list[str] = []

    def fail() -> None:
        raise ValueError("a bug")

    def go_on() -> None:
        done.append("first")
        turn_end(lambda: done.append("in the next turn"))

    def look() -> None:
        assert done == ["first", "second"]
        loop.call_soon(loop.stop)

    turn_end(go_on)
    turn_end(fail)
    turn_end(lambda: done.append("second"))
    loop.call_soon(look)
    assert done == []
    loop.run_forever()
    loop.close()
    assert done == ["first", "second", "in the next turn"]
    assert errors == ["a bug"]
