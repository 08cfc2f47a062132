"""However the network cuts a stream of bytes, the same frames come out of it."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ottla.wire.framing import FrameBuffer

FRAMES = st.lists(st.binary(max_size=40), max_size=8)


@given(frames=FRAMES, cuts=st.lists(st.integers(0, 400)), rest=st.binary(max_size=3))
def test_frames_do_not_depend_on_how_the_stream_is_cut(
    frames: list[bytes], cuts: list[int], rest: bytes
) -> None:
    stream = b"".join(len(frame).to_bytes(4) + frame for frame in frames) + rest
    ends = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    pieces = [stream[start:stop] for start, stop in pairwise(ends)]
    assert _fed(pieces) == (frames, len(rest))


@given(frames=FRAMES)
def test_byte_by_byte_is_as_good_as_at_once(frames: list[bytes]) -> None:
    stream = b"".join(len(frame).to_bytes(4) + frame for frame in frames)
    assert _fed([stream]) == _fed([bytes((byte,)) for byte in stream]) == (frames, 0)


def _fed(pieces: list[bytes]) -> tuple[list[bytes], int]:
    buffer = FrameBuffer()
    frames = [frame for piece in pieces for frame in buffer.feed(piece)]
    return frames, buffer.pending_bytes
