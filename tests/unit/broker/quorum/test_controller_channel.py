"""The way to the controller of this node."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.broker.quorum.controller_channel import LocalController
from ottla.quorum.controller.decision import Caller
from ottla.security.principal import Principal

CALLER = Caller(Principal("User", "alice"), "client", "127.0.0.1", 3)


def test_a_response_comes_when_the_controller_gives_it() -> None:
    asked: list[tuple[Any, Caller | None]] = []
    answers: list[Callable[[Any], None]] = []

    def decide(ask: Any, caller: Caller | None, answer: Callable[[Any], None]) -> None:
        asked.append((ask, caller))
        answers.append(answer)

    controller = LocalController(decide)
    responses = [controller.ask("request", CALLER), controller.ask("of the node itself")]
    assert asked == [("request", CALLER), ("of the node itself", None)]
    assert not any(response.is_done for response in responses)
    answers[1]("second")
    assert [response.is_done for response in responses] == [False, True]
    assert responses[1].value() == "second"


def test_a_controller_that_fails_fails_this_request(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_ask: Any, _caller: Caller | None, _answer: Callable[[Any], None]) -> None:
        raise ZeroDivisionError

    response = LocalController(fail).ask("request")
    with pytest.raises(ZeroDivisionError):
        response.value()
    assert "the controller failed on str" in caplog.text
