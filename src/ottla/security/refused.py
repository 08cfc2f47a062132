"""Why a node does not start: something about its security cannot be done as configured."""


class SecurityRefused(Exception):
    """What is configured cannot be done, or would be unsafe. The message says which config to change."""
