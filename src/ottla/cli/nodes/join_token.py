"""A token by which a node joins a secure cluster: a file with all that the node needs, and nothing more.

    ottla-join-1.<base64 of JSON>

It has a private key, so only its owner can read it. The key of the authority and the admin's password are not
in it.
"""

import base64
import binascii
import json
from pathlib import Path
from typing import Final, NamedTuple

from ottla.cli.failure import Failure

_PREFIX: Final = "ottla-join-1"


class JoinToken(NamedTuple):
    """What a node needs to join."""

    cluster_id: str
    node_id: int
    controllers: list[str]
    is_controller: bool
    ca: str
    node: str

    def __repr__(self) -> str:
        return f"JoinToken(node {self.node_id} of {self.cluster_id})"

    def text(self) -> str:
        """Return the content of the file."""
        content = json.dumps(self._asdict()).encode()
        return f"{_PREFIX}.{base64.urlsafe_b64encode(content).decode()}\n"

    def settings(self) -> dict[str, str]:
        """Return the configs of the node that has joined."""
        from ottla.metadata.configs.load import ALONE_VALUES

        settings = {
            **ALONE_VALUES,
            "node.id": str(self.node_id),
            "controller.quorum.bootstrap.servers": ",".join(self.controllers),
        }
        if self.is_controller:
            return settings | {"controller.quorum.auto.join.enable": "true"}
        return settings | {"process.roles": "broker"}


def read_token(path: Path) -> JoinToken:
    """Read the file of a token."""
    try:
        prefix, _, content = path.read_text().strip().partition(".")
        fields = json.loads(base64.urlsafe_b64decode(content)) if prefix == _PREFIX else {}
        return JoinToken(**fields)
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, TypeError, binascii.Error) as error:
        raise Failure(f"{path} is no token that `ottla cluster token` has made") from error
