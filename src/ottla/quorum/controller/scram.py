"""SCRAM credentials of users (RFC 5802): altered by decision, described from an image.

The password never gets here. A client sends it salted and iterated; stored are two keys derived from that, by
which a login can be checked but from which nobody can log in.
"""

import hashlib
import hmac
from collections import Counter
from typing import Any, Final

from ottla.metadata.features import SCRAM_FROM
from ottla.metadata.image import MetadataImage, ScramKey
from ottla.quorum.controller.deciders import decides
from ottla.quorum.controller.decision import ControllerView, Decision, Refusal
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.wire.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from ottla.wire.metadata_records.scram import RemoveUserScramCredentialRecord, UserScramCredentialRecord

_HASHES: Final = {1: "sha256", 2: "sha512"}
"""The hash function of each mechanism."""
ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16384


def refuse_alter_scram_credentials(
    ask: AlterUserScramCredentialsRequest, refusal: Refusal
) -> AlterUserScramCredentialsResponse:
    """Refuse the changes of all users."""
    changes: list[ScramCredentialDeletion | ScramCredentialUpsertion] = [*ask.deletions, *ask.upsertions]
    users = dict.fromkeys(change.name for change in changes)
    return AlterUserScramCredentialsResponse(results=tuple(_result(user, refusal) for user in users))


@decides(AlterUserScramCredentialsRequest, refuse=refuse_alter_scram_credentials)
def decide_alter_scram_credentials(
    view: ControllerView, ask: AlterUserScramCredentialsRequest
) -> Decision[AlterUserScramCredentialsResponse]:
    """Set and remove credentials. Each user is decided on its own, and can be altered once in a request."""
    changes: list[ScramCredentialDeletion | ScramCredentialUpsertion] = [*ask.deletions, *ask.upsertions]
    refused: dict[str, Refusal] = {}
    records: dict[str, Any] = {}
    for change in changes:
        user = change.name
        if user in refused:
            continue
        try:
            _check(view, change, is_repeated=user in records)
        except Refusal as refusal:
            refused[user] = refusal
            records.pop(user, None)
        else:
            records[user] = _record(change)
    outcomes = {**dict.fromkeys(records), **refused}
    results = tuple(_result(user, refusal) for user, refusal in outcomes.items())
    return Decision(AlterUserScramCredentialsResponse(results=results), tuple(records.values()))


def _result(user: str, refusal: Refusal | None) -> AlterUserScramCredentialsResult:
    return AlterUserScramCredentialsResult(
        user=user,
        error_code=ErrorCode.NONE if refusal is None else refusal.error_code,
        error_message=None if refusal is None else refusal.message,
    )


def scram_record(
    user: str, mechanism: int, salt: bytes, salted_password: bytes, iterations: int
) -> UserScramCredentialRecord:
    """Derive what is stored of a salted password."""
    name = _HASHES[mechanism]
    client_key = hmac.digest(salted_password, b"Client Key", name)
    return UserScramCredentialRecord(
        name=user,
        mechanism=mechanism,
        salt=salt,
        stored_key=hashlib.new(name, client_key).digest(),
        server_key=hmac.digest(salted_password, b"Server Key", name),
        iterations=iterations,
    )


def _check(
    view: ControllerView, change: ScramCredentialDeletion | ScramCredentialUpsertion, *, is_repeated: bool
) -> None:
    if is_repeated:
        raise Refusal(
            ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
        )
    if view.metadata_version < SCRAM_FROM:
        raise Refusal(ErrorCode.UNSUPPORTED_VERSION, "The current metadata.version does not support SCRAM.")
    if not change.name:
        raise Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if change.mechanism not in _HASHES:
        raise Refusal(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(change, ScramCredentialDeletion):
        if ScramKey(change.mechanism, change.name) not in view.image.scram:
            raise Refusal(
                ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
            )
    elif change.iterations < ITERATIONS_MIN:
        raise Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    elif change.iterations > ITERATIONS_MAX:
        raise Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    elif not change.salted_password:
        # Kafka fails as a whole, with an unknown error: an empty key is none to its cryptography.
        raise Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "The salted password must not be empty.")


def _record(change: ScramCredentialDeletion | ScramCredentialUpsertion) -> Any:
    if isinstance(change, ScramCredentialDeletion):
        return RemoveUserScramCredentialRecord(name=change.name, mechanism=change.mechanism)
    return scram_record(change.name, change.mechanism, change.salt, change.salted_password, change.iterations)


def describe_scram_credentials(
    image: MetadataImage, ask: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """Say which credentials users have. Without users named, all that have any are described."""
    times = Counter(user.name for user in ask.users or ())
    users = dict.fromkeys(times or (key.user for key in image.scram))
    results = tuple(_describe(image, user, times[user] > 1) for user in users)
    return DescribeUserScramCredentialsResponse(error_message="", results=results)


def _describe(image: MetadataImage, user: str, is_repeated: bool) -> DescribeUserScramCredentialsResult:
    credentials = [image.scram[key] for key in map(ScramKey, _HASHES, (user, user)) if key in image.scram]
    error_code, message = ErrorCode.NONE, ""
    if is_repeated:
        error_code = ErrorCode.DUPLICATE_RESOURCE
        message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
    elif not credentials:
        error_code = ErrorCode.RESOURCE_NOT_FOUND
        message = f"Attempt to describe a user credential that does not exist: {user}"
    infos = tuple(CredentialInfo(mechanism=one.mechanism, iterations=one.iterations) for one in credentials)
    return DescribeUserScramCredentialsResult(
        user=user,
        error_code=error_code,
        error_message=message,
        credential_infos=() if error_code else infos,
    )
