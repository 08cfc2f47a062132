"""Whatever text a config is given, it is read or refused; and what is shown is read back."""

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from ottla.metadata.configs.errors import InvalidConfig, UnusableConfigs
from ottla.metadata.configs.group import GroupConfig
from ottla.metadata.configs.load import load_node_config
from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.configs.topic import TopicConfig
from ottla.metadata.configs.values import WrongType, format_value, parse_value
from ottla.wire.config_kinds import ConfigType

KEYS = [*NodeConfig.keys.values(), *TopicConfig.keys.values(), *GroupConfig.keys.values()]
TEXTS = st.one_of(
    st.text(),
    st.integers().map(str),
    st.floats().map(str),
    st.lists(st.sampled_from(["compact", "delete", "*", "0:1", "", "a:b", "PLAINTEXT://h:1"])).map(",".join),
)


@given(st.sampled_from(range(len(KEYS))), TEXTS)
def test_a_text_is_read_or_refused(index: int, text: str) -> None:
    with suppress(InvalidConfig):
        KEYS[index].parse(text)


READABLE = [kind for kind in ConfigType if kind not in (ConfigType.UNKNOWN, ConfigType.PASSWORD)]


@given(st.sampled_from(READABLE), TEXTS)
def test_what_is_shown_is_read_back(config_type: ConfigType, text: str) -> None:
    try:
        value = parse_value(config_type, text)
    except WrongType:
        return
    shown = format_value(config_type, value)
    assert shown is not None
    assert format_value(config_type, parse_value(config_type, shown)) == shown


@given(st.floats(allow_nan=False))
def test_every_double_survives_being_shown(value: float) -> None:
    shown = format_value(ConfigType.DOUBLE, value)
    assert shown is not None
    assert parse_value(ConfigType.DOUBLE, shown) == value


@given(st.binary(max_size=300))
def test_a_file_of_any_bytes_is_taken_or_refused(properties: bytes) -> None:
    with suppress(UnusableConfigs):
        load_node_config(properties)
