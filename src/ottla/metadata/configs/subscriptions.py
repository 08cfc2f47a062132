"""Whether a client metrics subscription (KIP-714) may have certain configs, and which clients it is for."""

from collections.abc import Mapping
from typing import Any, Final

from ottla.metadata.configs.client_metrics import ClientMetricsConfig
from ottla.metadata.configs.errors import ChangeRefused, InvalidConfig
from ottla.model.patterns import InvalidPattern, compile_pattern
from ottla.wire.error_code import ErrorCode

INTERVAL_MS_MIN: Final = 100
INTERVAL_MS_MAX: Final = 3_600_000

SELECTORS: Final = frozenset(
    (
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    )
)


def check_subscription(name: str, overrides: Mapping[str, str]) -> None:
    """Refuse what a subscription called `name` cannot be."""
    if not name:
        raise ChangeRefused(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    for config_name in overrides:
        if config_name not in ClientMetricsConfig.keys:
            reason = f"Unknown client metrics configuration: {config_name}"
            raise ChangeRefused(ErrorCode.INVALID_REQUEST, reason)
    try:
        config = ClientMetricsConfig(
            {name: ClientMetricsConfig.keys[name].parse(text) for name, text in overrides.items()}
        )
    except InvalidConfig as error:
        raise ChangeRefused(ErrorCode.INVALID_CONFIG, str(error)) from None
    if not INTERVAL_MS_MIN <= config.interval_ms <= INTERVAL_MS_MAX:
        raise ChangeRefused(
            ErrorCode.INVALID_REQUEST,
            f"Invalid value {config.interval_ms} for interval.ms: "
            f"it must be between {INTERVAL_MS_MIN} and {INTERVAL_MS_MAX} (1 hour)",
        )
    parse_selectors(config.match)


def parse_selectors(patterns: tuple[str, ...]) -> dict[str, Any]:
    """Read `selector=regular expression` elements. Raises ChangeRefused for one that is none.

    Deviation: the expressions are RE2's. A client chooses the texts that Java's would take for ever with.
    """
    selectors: dict[str, Any] = {}
    for pattern in patterns:
        selector, equals, expression = (part.strip() for part in pattern.partition("="))
        try:
            if not equals or selector not in SELECTORS:
                raise ChangeRefused(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {pattern}")
            selectors[selector] = compile_pattern(expression)
        except InvalidPattern:
            raise ChangeRefused(
                ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {pattern}"
            ) from None
    return selectors
