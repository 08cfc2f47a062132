"""The one module that may be compiled passes its tests compiled, too."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import ottla

ROOT = Path(__file__).parents[3]
TESTS = ("tests/unit/records/test_bulk.py", "tests/property/test_bulk.py")


@pytest.mark.thorough(guard="tests/unit/records/test_bulk.py")
@pytest.mark.timeout(900)  # a compiler on a busy machine
@pytest.mark.skipif(
    shutil.which("cc") is None or find_spec("setuptools") is None, reason="needs a C compiler and setuptools"
)
def test_compiled_records_pass_the_same_tests(tmp_path: Path) -> None:
    shutil.copytree(Path(ottla.__file__).parent, tmp_path / "ottla")
    run([sys.executable, "-m", "mypyc", "ottla/records/bulk.py"], tmp_path, tmp_path)

    run(
        [sys.executable, "-c", "from ottla.records.bulk import IS_COMPILED; assert IS_COMPILED"],
        ROOT,
        tmp_path,
    )
    run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS], ROOT, tmp_path)


def run(command: list[str], folder: Path, packages: Path) -> None:
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
