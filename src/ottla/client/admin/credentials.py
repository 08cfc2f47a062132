"""SCRAM credentials: who may log in by password. The password itself never leaves this process."""

import hashlib
import secrets
from collections.abc import Collection
from enum import IntEnum
from typing import NamedTuple

from ottla.client.admin.results import Results
from ottla.client.admin.routes import Routes, outcome_of
from ottla.client.errors import raise_for
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName

DEFAULT_ITERATIONS = 8192
_SALT_BYTES = 24


class ScramMechanism(IntEnum):
    """The hash behind a credential."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def digest(self) -> str:
        """Return the name of the hash."""
        return "sha256" if self is ScramMechanism.SCRAM_SHA_256 else "sha512"

    def __str__(self) -> str:
        return self.name.replace("_", "-")


class ScramCredential(NamedTuple):
    """One credential of a user, as far as a broker tells."""

    mechanism: ScramMechanism
    iterations: int


class Credentials:
    """The SCRAM credentials of a cluster."""

    def __init__(self, routes: Routes) -> None:
        self._routes = routes

    async def describe(
        self, users: Collection[str] | None = None
    ) -> Results[str, tuple[ScramCredential, ...]]:
        """Return the credentials of some users, or of all that have any."""
        names = None if users is None else tuple(UserName(name=name) for name in users)
        answer = await self._routes.ask_any(DescribeUserScramCredentialsRequest(users=names))
        raise_for(answer.error_code, "cannot describe credentials", answer.error_message)
        return Results(
            {
                item.user: outcome_of(
                    item.error_code,
                    f"cannot describe the credentials of {item.user!r}",
                    item.error_message,
                    tuple(
                        ScramCredential(ScramMechanism(info.mechanism), info.iterations)
                        for info in item.credential_infos
                    ),
                )
                for item in answer.results
            }
        )

    async def set_password(
        self,
        user: str,
        password: str,
        mechanism: ScramMechanism = ScramMechanism.SCRAM_SHA_512,
        *,
        iterations: int = DEFAULT_ITERATIONS,
    ) -> None:
        """Let a user log in by a password. Only its salted hash is sent."""
        salt = secrets.token_bytes(_SALT_BYTES)
        salted = hashlib.pbkdf2_hmac(mechanism.digest, password.encode(), salt, iterations)
        upsertion = ScramCredentialUpsertion(
            name=user, mechanism=mechanism, iterations=iterations, salt=salt, salted_password=salted
        )
        await self._alter(AlterUserScramCredentialsRequest(deletions=(), upsertions=(upsertion,)))

    async def delete(self, user: str, mechanism: ScramMechanism) -> None:
        """Delete a credential."""
        deletion = ScramCredentialDeletion(name=user, mechanism=mechanism)
        await self._alter(AlterUserScramCredentialsRequest(deletions=(deletion,), upsertions=()))

    async def _alter(self, request: AlterUserScramCredentialsRequest) -> None:
        answer = await self._routes.ask_controller(
            request,
            lambda found: (item.error_code for item in found.results),
            repeatable=not request.deletions,
        )
        for item in answer.results:
            raise_for(item.error_code, f"cannot change the credentials of {item.user!r}", item.error_message)
