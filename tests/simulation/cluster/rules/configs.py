"""What a topic promises now: the configs in force on each replica are those that the metadata gives it.

They are worked out here from the file of the node and from its metadata, and compared with what logs obey.
"""

from dataclasses import asdict
from typing import Final

from tests.simulation.cluster.rules.wrong import Wrong

from ottla.broker.logs.log_configs import log_config
from ottla.metadata.configs.alter import MIN_ISR
from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.configs.load import load_node_config
from ottla.metadata.features import is_elr_enabled
from ottla.metadata.image import DEFAULT_BROKERS, MetadataImage
from ottla.storage.config import LogConfig
from ottla.testing.simulation.node import SimulatedNode
from ottla.wire.config_kinds import ResourceType

Terms = tuple[LogConfig, int]
_KEPT_MAX: Final = 64


class ConfigRules:
    """Looks at the configs of the partitions of a node, when these or the configs have changed."""

    def __init__(self) -> None:
        # What was in force at the last look, by node: the configs and topics as objects.
        self._looked: dict[int, tuple[object, object, object]] = {}
        self._static: dict[int, EffectiveConfigs] = {}
        self._terms: dict[tuple[int, object, tuple[tuple[str, str], ...]], Terms] = {}

    def look(self, one: SimulatedNode) -> None:
        """Look at a node."""
        assert one.node is not None
        broker = one.node.broker
        image = broker.image
        looked = (broker, image.configs, image.topics)
        known = self._looked.get(one.node_id)
        if known is not None and all(a is b for a, b in zip(looked, known, strict=True)):
            return
        self._looked[one.node_id] = looked
        _check_eligible_leaders(image)
        for part in broker.partitions:
            topic = image.topics.find(part.topic)
            if topic is None or topic.id != part.topic_id or part.index not in topic.partitions:
                continue
            log, in_sync_min = self._terms_of(one, image, part.topic)
            in_sync_min = min(in_sync_min, len(topic.partitions[part.index].replicas))
            if part.in_sync_replicas_min != in_sync_min:
                raise Wrong(
                    f"configs: {part} of node {one.node_id} needs {part.in_sync_replicas_min} in-sync "
                    f"replicas, but the metadata says {in_sync_min}"
                )
            if part.log.config != log:
                raise Wrong(
                    f"configs: {part} of node {one.node_id} obeys other configs than the metadata says: "
                    f"{_difference(part.log.config, log)}"
                )

    def _terms_of(self, one: SimulatedNode, image: MetadataImage, topic: str) -> Terms:
        overrides = image.topic_config(topic)
        default, own = image.default_broker_config(), image.broker_config(one.node_id)
        key = (one.node_id, (tuple(default.items()), tuple(own.items())), tuple(overrides.items()))
        found = self._terms.get(key)
        if found is None:
            if len(self._terms) >= _KEPT_MAX:
                self._terms.clear()
            static = self._static.get(one.node_id)
            if static is None:
                static = self._static[one.node_id] = load_node_config(b"", one.settings).configs
            configs = static.with_dynamic(default, own)
            resolved = configs.topic(overrides)
            found = self._terms[key] = (log_config(resolved, configs.node), resolved.min_insync_replicas)
        return found


def _check_eligible_leaders(image: MetadataImage) -> None:
    """Who is eligible to lead follows from one number for all brokers."""
    if not is_elr_enabled(image.features):
        return
    if MIN_ISR not in image.default_broker_config():
        raise Wrong(f"configs: replicas are eligible to lead, but {MIN_ISR} is left to each broker")
    for resource, texts in image.configs.items():
        if resource.type == ResourceType.BROKER and resource != DEFAULT_BROKERS and MIN_ISR in texts:
            raise Wrong(f"configs: replicas are eligible to lead, but {resource} has a {MIN_ISR} of its own")


def _difference(found: LogConfig, wanted: LogConfig) -> str:
    different = [
        f"{name} is {value!r}, not {getattr(wanted, name)!r}"
        for name, value in asdict(found).items()
        if value != getattr(wanted, name)
    ]
    return ", ".join(different)
