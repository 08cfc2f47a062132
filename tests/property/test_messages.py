"""Any message we can make survives the wire, whatever its version."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.messages import examples, message_values
from tests.support.declarations import all_messages

from ottla.wire.codec import decode, encode
from ottla.wire.declare import spec_of

NAMES = sorted(name for name, cls in all_messages().items() if spec_of(cls).versions.all)


@pytest.mark.parametrize("name", NAMES)
@examples(8)
@given(data=st.data())
def test_message_survives_the_wire(name: str, data: Any) -> None:
    cls = all_messages()[name]
    version = data.draw(st.sampled_from(spec_of(cls).versions.all))
    message = data.draw(message_values(cls, version))
    assert decode(cls, encode(message, version), version) == message
