"""What is secret is so from the first byte on, whatever the umask says."""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.runtime.private_files import make_private_directory, write_private

NOBODY = 65_534


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o000, 0o022, 0o777], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_a_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    write_private(path, "one")
    write_private(path, b"two")
    assert (mode_of(path), path.read_bytes()) == (0o600, b"two")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.usefixtures("umask")
def test_a_program_is_its_owners_alone_and_runs(tmp_path: Path) -> None:
    write_private(tmp_path / "program", "#!/bin/sh\n", is_program=True)
    assert mode_of(tmp_path / "program") == 0o700


@pytest.mark.usefixtures("umask")
def test_a_directory_is_its_owners_alone_and_so_are_those_above_it(tmp_path: Path) -> None:
    make_private_directory(tmp_path / "data/node")
    assert mode_of(tmp_path / "data") == mode_of(tmp_path / "data/node") == 0o700


def test_a_directory_that_exists_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o750)
    make_private_directory(tmp_path / "shared")
    assert mode_of(tmp_path / "shared") == 0o750


def test_a_file_that_others_could_read_is_replaced_and_not_filled(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("old")
    path.chmod(0o644)
    with path.open() as reader:
        write_private(path, "new")
        assert reader.read() == "old"
    assert mode_of(path) == 0o600


def test_a_link_that_somebody_has_laid_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / f"secret.{os.getpid()}.new").symlink_to(victim)
    write_private(tmp_path / "secret", "new")
    assert victim.read_text() == "mine"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_cannot_read_it() -> None:
    directory = Path("/tmp") / f"ottla-private-{os.getpid()}"
    directory.mkdir(mode=0o755)
    directory.chmod(0o755)
    try:
        write_private(directory / "secret", "hidden")
        (directory / "shown").write_text("anybody may read this")
        (directory / "shown").chmod(0o644)
        os.seteuid(NOBODY)
        try:
            assert (directory / "shown").read_text()
            with pytest.raises(PermissionError):
                (directory / "secret").read_text()
        finally:
            os.seteuid(0)
    finally:
        shutil.rmtree(directory)
