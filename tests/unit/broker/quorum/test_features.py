"""What a node says of features: kraft.version is known to the quorum alone."""

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.quorum.features import features_of
from ottla.metadata.features import KRAFT_VERSION, SUPPORTED


@pytest.mark.parametrize(("kraft_version", "is_finalized"), [(0, False), (1, True)])
def test_a_version_that_was_never_agreed_on_is_not_finalized(kraft_version: int, is_finalized: bool) -> None:
    image: Any = SimpleNamespace(features={"metadata.version": 27}, offset=42)
    quorum: Any = SimpleNamespace(driver=SimpleNamespace(kraft_version=kraft_version))

    features = features_of(image, quorum)

    levels = {each.name: (each.min_version_level, each.max_version_level) for each in features.finalized}
    own = {KRAFT_VERSION: (kraft_version, kraft_version)} if is_finalized else {}
    assert levels == {"metadata.version": (27, 27), **own}
    assert features.finalized_epoch == 42
    supported = {each.name: (each.min_version, each.max_version) for each in features.supported}
    assert supported == {name: (each.min, each.max) for name, each in SUPPORTED.items()}
