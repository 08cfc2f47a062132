"""Text without secrets, for files that people send to others.

Values are hidden by the names that stand before them: in properties, JSON, YAML, options and headers. What
has such a name loses its value to the end of the line, since a password may contain spaces. Private keys and
passwords in URLs are found by their form. Rather too much is hidden than too little.
"""

import re
from typing import Any, Final

HIDDEN: Final = "(hidden)"
_WORDS: Final = (
    r"pass(?:word|wd|phrase)|secret|credential|token(?!auth)|hmac|jaas\.config|authorization|"
    r"api[_.-]?key|private[_.-]?key|keystore\.key|users?\.file|salt|stored[_.-]?key|server[_.-]?key"
)
_NAMED: Final = re.compile(
    rf"(?P<name>[\w.\-\"']*(?:{_WORDS})[\w.\-\"']*\s*[=:]\s*)(?:[^\n\\]|\\.|\\\n)*", re.IGNORECASE | re.DOTALL
)
_PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)", re.DOTALL
)
_IN_URL: Final = re.compile(r"(://[^/\s:@]*:)[^/\s]*@")
_BY_NAME: Final = re.compile(_WORDS, re.IGNORECASE)


def without_secrets(text: str) -> str:
    """Return a text in which no value of a secret is left."""
    text = _PRIVATE_KEY.sub(HIDDEN, text)
    text = _IN_URL.sub(rf"\g<1>{HIDDEN}@", text)
    return _NAMED.sub(rf"\g<name>{HIDDEN}", text)


def data_without_secrets(data: Any) -> Any:
    """Return data as JSON has it, in which no value of a secret is left."""
    if isinstance(data, dict):
        return {
            key: HIDDEN
            if value is not None and not isinstance(value, dict | list) and _BY_NAME.search(str(key))
            else data_without_secrets(value)
            for key, value in data.items()
        }
    if isinstance(data, list | tuple):
        return [data_without_secrets(item) for item in data]
    if isinstance(data, str):
        return _IN_URL.sub(rf"\g<1>{HIDDEN}@", _PRIVATE_KEY.sub(HIDDEN, data))
    return data
