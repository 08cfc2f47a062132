"""Whatever happens to a cluster of several brokers, our controller decides what Apache Kafka's decides."""

import pytest
from tests.differential.controller_fuzz import Fuzz
from tests.differential.controller_twins import Twins
from tests.java.control_managers import ControlManagers
from tests.java.oracle import Oracle
from tests.java.rounds import rounds
from tests.support.deciding import new_topic, registration

from ottla.metadata.features import default_levels
from ottla.wire.messages.create_topics import CreateTopicsRequest

STEPS = 150


@pytest.fixture
def kafka(oracle: Oracle) -> ControlManagers:
    return ControlManagers(oracle)


@pytest.mark.parametrize("seed", rounds(10, 20))
def test_a_cluster_with_eligible_leaders_is_led_alike(kafka: ControlManagers, seed: int) -> None:
    Fuzz(seed, Twins(kafka, default_levels(), random=seed)).run(STEPS)


@pytest.mark.parametrize("seed", rounds(10, 20))
def test_a_cluster_without_eligible_leaders_is_led_alike(kafka: ControlManagers, seed: int) -> None:
    Fuzz(seed, Twins(kafka, default_levels(21), random=seed)).run(STEPS)


@pytest.mark.parametrize("random", rounds(4, 8))
@pytest.mark.parametrize("racks", [(None,), ("a", "b"), ("a", "b", "c")])
def test_replicas_are_placed_alike(
    kafka: ControlManagers, random: int, racks: tuple[str | None, ...]
) -> None:
    twins = Twins(kafka, default_levels(), random=random)
    brokers = [registration(number, rack=racks[number % len(racks)]) for number in range(7)]
    twins.replay(*brokers)
    for factor in range(len(racks), 7):
        twins.ask(CreateTopicsRequest(topics=(new_topic(f"t{factor}", 25, factor),)), 7)
