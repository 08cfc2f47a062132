"""Errors as pages tell them: what happened, and what to do next."""

from typing import Final, NamedTuple

from ottla.client.errors import AuthenticationFailed, BrokerError, ClientError, NoBrokerReached
from ottla.client.registry.client import RegistryRefused
from ottla.console.looks.satellites.connectors import WorkerRefused
from ottla.satellite.errors import HttpError

_MISSING: Final = ("UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID", "GROUP_ID_NOT_FOUND")
_TITLES: Final = {400: "That cannot be read", 403: "Not allowed", 404: "Not there", 502: "No answer"}


class Failure(NamedTuple):
    """An error for people."""

    status: int
    title: str
    sentence: str
    next_step: str | None = None


def failure_of(error: HttpError | ClientError, user: str | None) -> Failure:
    """Return what to say of an error."""
    status, sentence, next_step = 502, str(error), None
    if isinstance(error, HttpError):
        status = error.status
    elif isinstance(error, BrokerError):
        name = error.error_code.name
        status = 409
        if name.endswith("AUTHORIZATION_FAILED"):
            status = 403
            next_step = _who_may(user)
        elif name in _MISSING:
            status = 404
            next_step = "It may have been deleted, or its name is another one: look for it in the list."
    elif isinstance(error, RegistryRefused):
        status = 404 if error.code // 100 == 404 or error.code == 404 else 409
    elif isinstance(error, WorkerRefused):
        status = 404 if error.status == 404 else 409
    elif isinstance(error, AuthenticationFailed):
        status = 403
        next_step = "Log in again."
    elif isinstance(error, NoBrokerReached):
        next_step = "Check that the brokers run, and that the console was started with their addresses."
    return Failure(status, _TITLES.get(status, "That did not work"), sentence, next_step)


def _who_may(user: str | None) -> str:
    if user is None:
        return "The cluster asks who its clients are: start the console with security.protocol=SASL_SSL."
    return (
        f"The console does what {user} may do. An administrator can add a rule with `ottla acl add`; "
        "`ottla acl why` says which rule decides."
    )
