"""Compiles the records of the wheel, if OTTLA_COMPILE=1 is set: `make compiled-wheel`.

The compiled module goes beside its source and is found before it. Everything else of the wheel is the same,
but it is for one version of Python on one kind of machine then.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MODULE = Path("ottla/records/bulk.py")


class CompileRecords(BuildHookInterface):
    """What hatchling calls before and after it makes a wheel."""

    def dependencies(self) -> list[str]:
        """Return what the build needs besides hatchling."""
        return ["mypy", "setuptools"] if self._is_wanted() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile a copy of the source and add what came out."""
        if not self._is_wanted() or version == "editable":
            return
        self._room = TemporaryDirectory()
        room = Path(self._room.name)
        shutil.copytree(Path(self.root, "src/ottla"), room / "ottla")
        subprocess.run([sys.executable, "-m", "mypyc", MODULE], cwd=room, check=True)  # noqa: S603 - our own words
        for made in room.glob("ottla/records/*.so"):
            build_data["force_include"][str(made)] = str(made.relative_to(room))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, _build_data: dict[str, Any], _artifact_path: str) -> None:
        """Remove the copy."""
        if self._is_wanted() and version != "editable":
            self._room.cleanup()

    def _is_wanted(self) -> bool:
        return self.target_name == "wheel" and os.environ.get("OTTLA_COMPILE") == "1"
