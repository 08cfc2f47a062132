"""The admin client's properties."""

from dataclasses import dataclass

from ottla.client.properties import CommonSettings, prop


@dataclass(frozen=True, kw_only=True)
class AdminSettings(CommonSettings):
    """Kafka's admin client properties, as far as this client has them."""

    default_api_timeout_ms: int = prop("How long an operation may take, including retries.", 60_000, low=1)
