"""The files that pages load: styles, modules, fonts. Their addresses carry a hash of what is in them.

So a browser keeps them for ever, and loads them again as soon as they are others.
"""

import hashlib
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

PREFIX: Final = "/static/"
_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "woff2": "font/woff2",
    "svg": "image/svg+xml",
}
_HASH_CHARACTERS: Final = 12


class StaticFile(NamedTuple):
    """A file, and its address."""

    address: str
    content: bytes
    content_type: str


@cache
def static_files() -> dict[str, StaticFile]:
    """Return all files by their plain names."""
    found: dict[str, StaticFile] = {}
    plain: dict[str, bytes] = {}
    root = files("ottla.console") / "static"
    for folder in (root, root / "vendor"):
        for entry in folder.iterdir():
            ending = entry.name.rpartition(".")[2]
            if ending in _TYPES:
                plain[entry.name] = entry.read_bytes()
    # Styles name fonts, so they come after them.
    for name in sorted(plain, key=lambda name: name.endswith(".css")):
        content = plain[name]
        if name.endswith(".css"):
            for other, file in found.items():
                content = content.replace(f'url("{other}")'.encode(), f'url("{file.address}")'.encode())
        stem, _, ending = name.rpartition(".")
        digest = hashlib.sha256(content).hexdigest()[:_HASH_CHARACTERS]
        found[name] = StaticFile(f"{PREFIX}{stem}.{digest}.{ending}", content, _TYPES[ending])
    return found


@cache
def by_address() -> dict[str, StaticFile]:
    """Return all files by their addresses."""
    return {file.address: file for file in static_files().values()}
