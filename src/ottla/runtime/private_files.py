"""Files and directories with secrets: nobody but their owner can read them, from the first byte on.

Whatever the umask says, and whatever was there before: a file is made beside the old one and takes its place.
"""

import os
from pathlib import Path
from typing import Final

_FILE_MODE: Final = 0o600
_PROGRAM_MODE: Final = 0o700
_DIRECTORY_MODE: Final = 0o700


def write_private(path: Path, content: str | bytes, *, is_program: bool = False) -> None:
    """Write a file that only its owner can read. A crash leaves the old content or the new."""
    data = content.encode() if isinstance(content, str) else content
    mode = _PROGRAM_MODE if is_program else _FILE_MODE
    # With the process in its name, since another one may write the same file.
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    new.unlink(missing_ok=True)
    # O_EXCL follows no link, so that nobody else's file is written.
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        # A umask may have taken rights from the owner.
        os.fchmod(descriptor, mode)
        file.write(data)
    new.replace(path)


def make_private_directory(path: Path) -> None:
    """Make a directory, and those above it, that only its owner can look into. What exists stays as is."""
    for one in (*reversed(path.parents), path):
        if not one.exists():
            one.mkdir(_DIRECTORY_MODE, exist_ok=True)
            one.chmod(_DIRECTORY_MODE)
