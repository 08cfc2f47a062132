"""Options that begin with `kafka.`: properties of the client, by Kafka's names.

Spark's users know them from its own Kafka source, where they go to the Java client. Those that this client
has no use for are named in the log and left out, so that a list of options for Java serves here as well.
"""

import dataclasses
import logging
import re
from collections.abc import Mapping

from ottla.client.producer.settings import ProducerSettings
from ottla.client.properties import CommonSettings, property_name

_PREFIX = "kafka."
_JAAS = re.compile(r'(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"')
_logger = logging.getLogger(__name__)


class InvalidOption(ValueError):
    """An option of a source or sink that is missing, not known, or has a value that it cannot have."""


def client_properties(options: Mapping[str, str], own: frozenset[str] = frozenset()) -> dict[str, str]:
    """Return the properties that the client understands, and those named by `own`.

    The names of options are not sensitive to case, as Spark has it. A user and a password may be given as
    Java has them, in `sasl.jaas.config`.
    """
    known = {property_name(item) for item in dataclasses.fields(CommonSettings)}
    known |= {property_name(item) for item in dataclasses.fields(ProducerSettings)}
    known |= own
    properties: dict[str, str] = {}
    for option, value in options.items():
        name = option.lower()
        if not name.startswith(_PREFIX):
            continue
        name = name.removeprefix(_PREFIX)
        if name == "sasl.jaas.config":
            properties |= {f"sasl.{field}": text for field, text in _JAAS.findall(value)}
        elif name in known:
            properties[name] = value
        else:
            _logger.warning("this client ignores the option %r", option)
    if not properties.get("bootstrap.servers"):
        raise InvalidOption(
            'option "kafka.bootstrap.servers" is missing: give the address of a broker as `host:port`'
        )
    return properties


def common_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return those properties that every client has."""
    names = {property_name(item) for item in dataclasses.fields(CommonSettings)}
    return {name: value for name, value in properties.items() if name in names}
