"""The file of users."""

from pathlib import Path

import pytest

from ottla.satellite.settings import UnusableSettings
from ottla.satellite.users import Credentials, Users, read_credentials


@pytest.mark.parametrize("mode", [0o644, 0o606, 0o620, 0o666])
def test_a_file_that_others_can_read_or_change_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "users"
    path.write_text("ann: secret\n")
    path.chmod(mode)
    with pytest.raises(UnusableSettings, match="chmod 600"):
        Users.read(path)


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o440, 0o640])
def test_a_file_of_ones_own_is_read(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "users"
    path.write_text("# who\nann: secret, admin\n")
    path.chmod(mode)
    users = Users.read(path)
    assert users.knows(Credentials("ann", "secret"))
    assert not users.knows(Credentials("ann", "secret, admin"))
    assert not users.knows(Credentials("bob", "secret"))


def test_credentials_are_read() -> None:
    assert read_credentials("Basic YW5uOnNlOmNyZXQ=") == Credentials("ann", "se:cret")
    assert read_credentials("Basic YW5u") is None
    assert read_credentials("Basic ???") is None
    assert read_credentials("Bearer YW5uOnNlOmNyZXQ=") is None
