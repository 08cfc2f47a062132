"""The table of releases agrees with the one that kafka-python keeps."""

import warnings

import pytest

from ottla.testing.releases import RELEASES, newest_versions
from ottla.wire.apis import REMOVED, ApiKey

with warnings.catch_warnings():
    # kafka-python reads its own files in a way that Python is about to give up.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.protocol.broker_version_data import BROKER_API_VERSIONS

_BETWEEN_SERVERS = {
    *REMOVED,
    ApiKey.ALTER_PARTITION,
    ApiKey.ENVELOPE,
    ApiKey.ALLOCATE_PRODUCER_IDS,
    ApiKey.ADD_RAFT_VOTER,
    ApiKey.REMOVE_RAFT_VOTER,
}


@pytest.mark.parametrize("release", RELEASES)
def test_each_release_speaks_what_kafka_python_knows_of_it(release: str) -> None:
    theirs = BROKER_API_VERSIONS[tuple(map(int, release.split(".")))]
    expected = {ApiKey(key): last for key, (_, last) in theirs.items() if ApiKey(key) not in _BETWEEN_SERVERS}
    assert newest_versions(release) == expected


def test_an_unknown_release_is_named_in_the_error() -> None:
    with pytest.raises(ValueError, match=r"unknown release '1\.0': use one of 2\.1, 2\.8"):
        newest_versions("1.0")
