"""What people see while something takes long."""

from io import StringIO

from ottla.cli.output import Tally


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_long_work_is_counted_and_the_line_is_gone_afterwards() -> None:
    terminal, clock = Terminal(), Clock()
    with Tally("records", terminal, clock) as tally:
        tally.show(10)
        assert terminal.getvalue() == ""
        clock.now_s += 0.6
        tally.show(12_000)
        tally.show(12_001)
        assert terminal.getvalue() == "\r12,000 records"
    assert terminal.getvalue().endswith("\r" + " " * len("12,000 records") + "\r")


def test_short_work_is_not_counted() -> None:
    terminal = Terminal()
    with Tally("records", terminal, Clock()) as tally:
        tally.show(1)
    assert terminal.getvalue() == ""


def test_nothing_is_counted_where_nobody_looks() -> None:
    stream, clock = StringIO(), Clock()
    with Tally("records", stream, clock) as tally:
        clock.now_s += 60
        tally.show(1_000_000)
    assert stream.getvalue() == ""
