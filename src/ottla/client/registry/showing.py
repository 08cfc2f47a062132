"""Schemas as people read them: laid out, compared, and with the reasons why one does not fit."""

import json
import re
from difflib import unified_diff
from typing import Final

from ottla.client.registry.client import Registered

_DESCRIPTION: Final = re.compile(
    r"description: ?(?:'(.*?)'(?:, additionalInfo|\})|\"(.*?)[\"']\})", re.DOTALL
)


def laid_out(found: Registered) -> str:
    """Return the text of a schema for people."""
    if found.schema_type == "PROTOBUF":
        return found.text.rstrip("\n")
    return json.dumps(json.loads(found.text), indent=2, ensure_ascii=False)


def difference(older: Registered, newer: Registered, older_name: str, newer_name: str) -> list[str]:
    """Return what has changed between two schemas, as lines of a unified diff."""
    before, after = laid_out(older).splitlines(), laid_out(newer).splitlines()
    return list(unified_diff(before, after, older_name, newer_name, lineterm=""))


def reason(message: str) -> str | None:
    """Return what a message of a registry says of a change. Others are about the versions compared."""
    found = _DESCRIPTION.search(message)
    if found is not None:
        return found.group(1) or found.group(2)
    return None if message.startswith("{") else message
