"""Answers that are known, and a way to get those that are not.

What decides about schemas is a function without waiting. It asks here, and if an answer is not known, it is
left with `NotYetKnown`. The answer is found out then, and the function is called again. So nothing is locked
while a worker computes.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, Final, Generic, TypeVar

from ottla.registry.checking.questions import Comparison, Failure, Question
from ottla.registry.errors import RegistryError
from ottla.schemas.errors import InvalidSchema

T = TypeVar("T")
R = TypeVar("R")
_KEPT_MAX: Final = 10_000
_KEPT_CHARACTERS_MAX: Final = 64_000_000
_STEPS_MAX: Final = 10_000


class NotYetKnown(Exception):
    """An answer has to be found out first."""

    def __init__(self, question: Question) -> None:
        super().__init__(question.kind.value)
        self.question = question


class Answers:
    """Answers to questions about schemas. `find_out` gets one."""

    def __init__(self, find_out: Callable[[Question], Awaitable[Any]]) -> None:
        self._find_out = find_out
        self._known: OrderedDict[Question, Any] = OrderedDict()
        self._characters = 0
        self._own: dict[Question, Any] = {}
        """What the function that is being called has found out for itself."""

    def ask(self, question: Question) -> Any:
        """Return an answer that is known. Raises NotYetKnown, or InvalidSchema."""
        if question in self._known:
            self._known.move_to_end(question)
            answer = self._known[question]
        elif question in self._own:
            answer = self._own[question]
        else:
            raise NotYetKnown(question)
        if isinstance(answer, Failure):
            raise InvalidSchema(answer.message)
        return answer

    async def learn(self, question: Question) -> Any:
        """Find an answer out, and keep it. Returns it, since others may drive it out at once."""
        answer = await self._find_out(question)
        if question not in self._known:
            self._characters += _size(question)
        self._known[question] = answer
        while len(self._known) > _KEPT_MAX or (
            self._characters > _KEPT_CHARACTERS_MAX and len(self._known) > 1
        ):
            self._characters -= _size(self._known.popitem(last=False)[0])
        return answer

    async def settle(self, decide: Callable[[], T]) -> T:
        """Call a function until it has all the answers that it needs."""
        attempts = Attempts(self, decide)

        async def once() -> T:
            return attempts()

        return await attempts.settle(once)

    def ask_with(self, own: dict[Question, Any], decide: Callable[[], T]) -> T:
        """Call a function that also knows answers of its own."""
        self._own = own
        try:
            return decide()
        finally:
            self._own = {}


class Attempts(Generic[T]):
    """The attempts to call one function. What was found out for one of them is there for all later ones.

    A comparison with many long versions drives all other answers out. Without answers of its own, a function
    that needs another one as well would never have both.
    """

    def __init__(self, answers: Answers, decide: Callable[[], T]) -> None:
        self._answers = answers
        self._decide = decide
        self._own: dict[Question, Any] = {}

    def __call__(self) -> T:
        """Call the function. Raises NotYetKnown."""
        return self._answers.ask_with(self._own, self._decide)

    async def settle(self, attempt: Callable[[], Awaitable[R]]) -> R:
        """Make attempts, each of which calls this, until no answer is missing."""
        for _ in range(_STEPS_MAX):
            try:
                return await attempt()
            except NotYetKnown as missing:
                self._own[missing.question] = await self._answers.learn(missing.question)
        raise RegistryError(503, "There are too many schemas to look at: ask for fewer")


def _size(question: Question) -> int:
    sources = [question.source]
    if isinstance(question.argument, Comparison):
        sources += [source for _, source in question.argument.versions]
    return sum(len(source.text) + sum(len(text) for _, text in source.resolved) for source in sources)
