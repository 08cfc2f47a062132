"""A share of the lab: some troubles with their healthy twins, by seeds that nothing was tuned by.

`make lab SCENARIOS=100` plays more.
"""

import re
from pathlib import Path

import pytest
from tests.java.jars import java_classpath

from ottla.explain.answer import CAUSE, HEALTHY, UNKNOWN
from ottla.explain.causes import silent
from ottla.lab.campaign import play, score
from ottla.lab.clients import JAVA, Clients
from ottla.lab.java import NoJava, compiled_client
from ottla.lab.scenario import SCENARIOS

QUICK = {
    "no-key": "without-keys",
    "partitions-added": "more-partitions",
    "another-partitioner": "two-partitioners",
    "retry-without-idempotence": "overtaken",
    "more-members-than-partitions": "too-many-members",
    "partitions-without-member": "grown",
    "offset-out-of-range": "deleted-records",
    "crash-before-commit": "dies",
    "produced-twice-by-retry": "retried",
    "slow-processing": "slow-processing",
    "slow-syncs": "slow-disk",
    "began-at-end": "from-the-end",
    "static-member-gone": "static-ghost",
    "kills-its-consumer": "poison",
    "keys-changed": "other-keys",
}


NOT_PROVED = {"overtaken"}
"""The request is refused on its way, so no line of the journal shows it: its cause is only possible."""

# One trouble for each question.
EACH_TIME = ("deleted-records", "retried", "more-partitions", "slow-processing")
OTHERS = pytest.mark.thorough(guard="tests/lab/test_scenarios.py::test_the_right_cause_comes_first")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in EACH_TIME else OTHERS) for name in QUICK.values()],
)
def test_the_right_cause_comes_first(name: str) -> None:
    outcome = play(SCENARIOS[name], 1001, True)
    assert outcome.trouble is None
    assert outcome.answer is not None
    assert outcome.answer.verdict == (UNKNOWN if name in NOT_PROVED else CAUSE)
    assert outcome.is_right, outcome.line()
    assert outcome.answer.causes[0].evidence
    assert outcome.answer.causes[0].advice
    assert score([outcome]).startswith("right cause first: 1 of 1")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("too-many-members", marks=OTHERS),
        "dies",
        pytest.param("more-partitions", marks=OTHERS),
    ],
)
def test_a_healthy_twin_is_healthy(name: str) -> None:
    outcome = play(SCENARIOS[name], 1003, False)
    assert outcome.trouble is None
    assert outcome.answer is not None
    assert outcome.answer.verdict == HEALTHY, outcome.line()


@pytest.mark.parametrize("name", ["dies", "two-producers"])
@pytest.mark.thorough(guard="tests/lab/test_scenarios.py::test_the_right_cause_comes_first")
def test_troubles_of_clients_in_java_are_explained(name: str) -> None:
    with compiled_client(java_classpath().removesuffix("/*")) as java:
        outcome = play(SCENARIOS[name], 1005, True, Clients((JAVA,), java))
    assert outcome.trouble is None
    assert outcome.is_right, outcome.line()


def test_a_folder_without_jars_is_refused_with_a_sentence(tmp_path: Path) -> None:
    java_classpath()
    with pytest.raises(NoJava, match="no jars of Kafka's client"), compiled_client(str(tmp_path)):
        pass


WITHOUT_SCENES = {"lost.py", "lost_in_log.py"}
"""Their causes are shown by `tests/unit/explain/test_lost.py`: the lab makes no records disappear yet."""


MADE_UP = {
    "all-deleted",
    "commits-each-record",
    "committed-past-end",
    "login-refused",
    "never-fetched",
    "partition-without-leader",
    "pattern-without-caret",
    "read-by-other-groups",
    "too-few-in-sync",
    "topic-deleted",
    "topic-newer-than-members",
}
"""Those that were found by troubles of users, and are shown by evidence that is made up after them."""


def test_causes_without_a_scene_are_shown_by_made_up_evidence() -> None:
    shown = Path("tests/unit/explain/test_fresh_troubles.py").read_text()
    assert {cause for cause in MADE_UP if f'"{cause}"' not in shown} == set()
    assert MADE_UP.isdisjoint(item.cause for item in SCENARIOS.values())


def test_every_cause_has_a_trouble() -> None:
    folder = Path(silent.__file__).parent
    source = "".join(path.read_text() for path in folder.glob("*.py") if path.name not in WITHOUT_SCENES)
    causes = set(re.findall(r"(?:Cause\(\s*|return |name = )\"([a-z]+(?:-[a-z]+)+)\"", source))
    assert {"slow-fetching", "session-expired", "slow-syncs", "offsets-expired"} <= causes
    assert causes - MADE_UP <= {item.cause for item in SCENARIOS.values()}


def test_every_question_has_troubles() -> None:
    assert {item.question for item in SCENARIOS.values()} == {"silent", "twice", "order", "slow"}
    assert set(QUICK) == {SCENARIOS[name].cause for name in QUICK.values()}
