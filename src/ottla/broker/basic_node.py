"""What every part of a broker may ask of its node. A room that needs more declares it beside its code."""

from typing import Protocol

from ottla.broker.quorum.controller_channel import ControllerChannel
from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.image import MetadataImage
from ottla.metadata.published import PublishedMetadata
from ottla.world.clock import Clock
from ottla.world.randomness import Randomness
from ottla.world.workers import Workers
from ottla.world.world import World


class BasicNode(Protocol):
    """A broker, as far as all of its parts know it."""

    @property
    def node_id(self) -> int: ...
    @property
    def broker_epoch(self) -> int: ...
    @property
    def world(self) -> World: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def workers(self) -> Workers: ...
    @property
    def random(self) -> Randomness: ...
    @property
    def metadata(self) -> PublishedMetadata: ...
    @property
    def image(self) -> MetadataImage: ...
    @property
    def configs(self) -> EffectiveConfigs: ...
    @property
    def config(self) -> NodeConfig: ...
    @property
    def controller(self) -> ControllerChannel: ...
