"""How a config is written down: one expression, as an attribute of the class that groups it.

    class BrokerLogConfigs(ConfigValues):
        log_segment_bytes = integer(
            "log.segment.bytes", 1 << 30, Range(1 << 20), importance=HIGH, update=CLUSTER_WIDE,
            doc="Largest size of a segment file.",
        )

The class is the declaration, an instance holds the values: `BrokerLogConfigs.log_segment_bytes` is the
`ConfigKey`, `values.log_segment_bytes` an `int`. A key has no `__set__`, so values live in the instance's own
dictionary and reading one costs what any attribute costs. The attribute is the config's name with dots
replaced by underscores. Instances do not change; `replaced` makes another.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import (
    Any,
    ClassVar,
    Final,
    Generic,
    NotRequired,
    Self,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    overload,
)

from ottla.metadata.configs.errors import InvalidConfig
from ottla.metadata.configs.kinds import Importance, UpdateMode
from ottla.metadata.configs.rules import DistinctList, Rule
from ottla.metadata.configs.values import HIDDEN, ConfigValue, Password, WrongType, format_value, parse_value
from ottla.wire.config_kinds import ConfigType

T = TypeVar("T", covariant=True)


class Required:
    """Stands for the default of a config that has none: somebody has to set it."""

    def __repr__(self) -> str:
        return "<required>"


REQUIRED: Final = Required()


class Facts(TypedDict):
    """What a declaration says besides name, type, default and rule."""

    doc: str
    importance: NotRequired[Importance]
    update: NotRequired[UpdateMode]
    broker_key: NotRequired[str]
    internal: NotRequired[bool]
    unlisted: NotRequired[bool]
    plugin: NotRequired[bool]
    inert: NotRequired[bool]


class ConfigKey(Generic[T]):
    """One declared config: its name, type, default, what it takes, what it means, and how it may change."""

    __slots__ = (
        "attribute",
        "broker_key",
        "default",
        "doc",
        "importance",
        "inert",
        "internal",
        "name",
        "plugin",
        "rule",
        "type",
        "unlisted",
        "update",
    )

    def __init__(
        self,
        name: str,
        config_type: ConfigType,
        default: ConfigValue | Required,
        rule: Rule | None,
        *,
        doc: str,
        importance: Importance = Importance.MEDIUM,
        update: UpdateMode = UpdateMode.DYNAMIC,
        broker_key: str | None = None,
        internal: bool = False,
        unlisted: bool = False,
        plugin: bool = False,
        inert: bool = False,
    ) -> None:
        self.name = name
        self.type = config_type
        self.default = default
        self.rule = rule
        self.doc = doc
        self.importance = importance
        self.update = update
        self.broker_key = broker_key
        """The broker's config that a topic or a group takes its value from when it sets none itself."""
        self.internal = internal
        """Kafka keeps it for itself: it is not in Kafka's documentation."""
        self.plugin = plugin
        """In Kafka it belongs to a plugin. The broker does not know its type, and so hides its value."""
        self.unlisted = unlisted or internal or plugin
        """DescribeConfigs lists it only when somebody has set it."""
        self.inert = inert
        """Ottla takes the config, so that Kafka's files and tools work, but does not act on it."""
        self.attribute = name.replace(".", "_")

    def __set_name__(self, owner: type, attribute: str) -> None:
        assert attribute == self.attribute, f"{owner.__name__}.{attribute} declares {self.name}"

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Self | T:
        """Return the key if the class is asked. Instances have the value in their own dictionary."""
        assert instance is None, f"{owner.__name__} has no value for {self.name}"
        return self

    def __repr__(self) -> str:
        return f"<config {self.name}>"

    @property
    def is_sensitive(self) -> bool:
        """Whether the value must never be shown."""
        return self.type is ConfigType.PASSWORD or self.plugin

    def parse(self, text: str) -> T:
        """Return the value `text` denotes, or raise InvalidConfig."""
        try:
            value = parse_value(self.type, text)
        except WrongType as error:
            raise InvalidConfig(self.name, text, str(error)) from None
        if isinstance(self.rule, DistinctList) and isinstance(value, tuple):
            # What is said twice counts once (KIP-1161).
            value = tuple(dict.fromkeys(value))
        return self.checked(value)

    def checked(self, value: ConfigValue) -> T:
        """Return `value` if the config takes it, or raise InvalidConfig."""
        fault = None if self.rule is None else self.rule.find_fault(value)
        if fault is not None:
            shown = HIDDEN if isinstance(value, Password) else self.format(value)
            raise InvalidConfig(self.name, shown, fault)
        return cast("T", value)

    def format_default(self) -> str | None:
        """Return the text Kafka shows for the default; None if there is none, or if it is null."""
        return None if isinstance(self.default, Required) else self.format(self.default)

    def format(self, value: ConfigValue) -> str | None:
        """Return the text Kafka shows for a value of this config."""
        return format_value(self.type, value)


class ConfigValues:
    """The values of declared configs, read as attributes. Subclasses declare them; bases add up."""

    keys: ClassVar[Mapping[str, ConfigKey[Any]]] = MappingProxyType({})
    """Every declared config by its Kafka name, in the order of declaration."""

    def __init_subclass__(cls) -> None:
        """Collect what the class and its bases declare."""
        declared: dict[str, ConfigKey[Any]] = {}
        for base in (*reversed(cls.__mro__[1:]), cls):
            for key in vars(base).values():
                if isinstance(key, ConfigKey):
                    assert key.name not in declared or declared[key.name] is key, (
                        f"{key.name} is declared twice"
                    )
                    declared[key.name] = key
        cls.keys = MappingProxyType(declared)

    def __init__(self, values: Mapping[str, ConfigValue]) -> None:
        """Take the parsed `values` by Kafka's names; what is missing has its default."""
        own = vars(self)
        for name, key in self.keys.items():
            value = values.get(name, key.default) if name in values else key.default
            if isinstance(value, Required):
                raise InvalidConfig(name, None, "it has no default, so it has to be set")
            own[key.attribute] = value

    def __setattr__(self, attribute: str, value: object) -> None:
        raise AttributeError(f"configs do not change: `replaced` makes others ({attribute})")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(
            value == getattr(other, self.keys[name].attribute) for name, value in self.items()
        )

    __hash__ = None  # type: ignore[assignment]

    def value_of(self, name: str) -> ConfigValue:
        """Return the value of the config called `name`."""
        return cast("ConfigValue", vars(self)[self.keys[name].attribute])

    def items(self) -> Iterator[tuple[str, ConfigValue]]:
        """Yield each config's Kafka name and value."""
        own = vars(self)
        for name, key in self.keys.items():
            yield name, own[key.attribute]

    def replaced(self, values: Mapping[str, ConfigValue]) -> Self:
        """Return the same values but for those in `values`, which go by Kafka's names."""
        return type(self)({**dict(self.items()), **values})


def boolean(name: str, default: bool, **facts: Unpack[Facts]) -> ConfigKey[bool]:
    """Declare a config that is true or false."""
    return ConfigKey(name, ConfigType.BOOLEAN, default, None, **facts)


@overload
def integer(
    name: str, default: None, rule: Rule | None = None, **facts: Unpack[Facts]
) -> ConfigKey[int | None]: ...
@overload
def integer(
    name: str, default: int | Required, rule: Rule | None = None, **facts: Unpack[Facts]
) -> ConfigKey[int]: ...
def integer(
    name: str, default: int | Required | None, rule: Rule | None = None, **facts: Unpack[Facts]
) -> ConfigKey[Any]:
    """Declare a whole number of 32 bits."""
    return ConfigKey(name, ConfigType.INT, default, rule, **facts)


def short(name: str, default: int, rule: Rule | None = None, **facts: Unpack[Facts]) -> ConfigKey[int]:
    """Declare a whole number of 16 bits."""
    return ConfigKey(name, ConfigType.SHORT, default, rule, **facts)


@overload
def long(
    name: str, default: None, rule: Rule | None = None, **facts: Unpack[Facts]
) -> ConfigKey[int | None]: ...
@overload
def long(name: str, default: int, rule: Rule | None = None, **facts: Unpack[Facts]) -> ConfigKey[int]: ...
def long(name: str, default: int | None, rule: Rule | None = None, **facts: Unpack[Facts]) -> ConfigKey[Any]:
    """Declare a whole number of 64 bits."""
    return ConfigKey(name, ConfigType.LONG, default, rule, **facts)


def double(name: str, default: float, rule: Rule | None = None, **facts: Unpack[Facts]) -> ConfigKey[float]:
    """Declare a number with a fraction."""
    return ConfigKey(name, ConfigType.DOUBLE, default, rule, **facts)


@overload
def string(
    name: str, default: None, rule: Rule | None = None, **facts: Unpack[Facts]
) -> ConfigKey[str | None]: ...
@overload
def string(name: str, default: str, rule: Rule | None = None, **facts: Unpack[Facts]) -> ConfigKey[str]: ...
def string(
    name: str, default: str | None, rule: Rule | None = None, **facts: Unpack[Facts]
) -> ConfigKey[Any]:
    """Declare a text."""
    return ConfigKey(name, ConfigType.STRING, default, rule, **facts)


@overload
def listing(
    name: str, default: None, rule: Rule | None = None, **facts: Unpack[Facts]
) -> ConfigKey[tuple[str, ...] | None]: ...
@overload
def listing(
    name: str, default: tuple[str, ...] | Required, rule: Rule | None = None, **facts: Unpack[Facts]
) -> ConfigKey[tuple[str, ...]]: ...
def listing(
    name: str, default: tuple[str, ...] | Required | None, rule: Rule | None = None, **facts: Unpack[Facts]
) -> ConfigKey[Any]:
    """Declare a list of texts, written with commas."""
    return ConfigKey(name, ConfigType.LIST, default, rule, **facts)


@overload
def java_class(name: str, default: None, **facts: Unpack[Facts]) -> ConfigKey[str | None]: ...
@overload
def java_class(name: str, default: str, **facts: Unpack[Facts]) -> ConfigKey[str]: ...
def java_class(name: str, default: str | None, **facts: Unpack[Facts]) -> ConfigKey[Any]:
    """Declare the name of a Java class. Deviation: Ottla keeps the name and loads nothing."""
    return ConfigKey(name, ConfigType.CLASS, default, None, **facts)


def password(name: str, **facts: Unpack[Facts]) -> ConfigKey[Password | None]:
    """Declare a secret. No secret has a default."""
    return ConfigKey(name, ConfigType.PASSWORD, None, None, **facts)
