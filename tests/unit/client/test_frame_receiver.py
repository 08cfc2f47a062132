"""Frames come out whole, however the bytes came in, and a size field alone costs nothing."""

import asyncio
import random
from collections.abc import Callable
from struct import Struct

from ottla.client.frame_receiver import Frame, FrameReceiver
from ottla.wire.errors import MalformedBytes

SIZE = Struct(">i")


class World:
    """A receiver, and what it told."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.ends: list[Exception | None] = []
        self.receiver = FrameReceiver(self.frames.append, self.ends.append)

    def feed(self, data: bytes, piece_bytes: int) -> None:
        position = 0
        while position < len(data):
            room = self.receiver.get_buffer(-1)
            assert len(room) > 0
            count = min(len(room), piece_bytes, len(data) - position)
            room[:count] = data[position : position + count]
            self.receiver.buffer_updated(count)
            position += count


def _in_a_loop(body: Callable[[], None]) -> None:
    async def run() -> None:

        body()

    asyncio.run(run())


def test_frames_of_all_sizes_come_out_as_they_went_in() -> None:
    def body() -> None:
        rng = random.Random(7)
        sizes = [0, 1, 65_535, 65_536, 65_532, 1_048_576, 3_000_000, 5, 70_000, 70_000, 4]
        for piece_bytes in (1_000, 65_536, 262_144, 10_000_000):
            rng.shuffle(sizes)
            sent = [rng.randbytes(size) for size in sizes]
            world = World()
            world.feed(b"".join(SIZE.pack(len(frame)) + frame for frame in sent), piece_bytes)
            assert [bytes(frame) for frame in world.frames] == sent
            assert world.ends == []

    _in_a_loop(body)


def test_frames_come_out_of_single_bytes() -> None:
    def body() -> None:
        world = World()
        world.feed(b"".join(SIZE.pack(3) + b"abc" for _ in range(50)), 1)
        assert world.frames == [b"abc"] * 50

    _in_a_loop(body)


def test_a_frame_that_was_handed_on_is_not_written_over() -> None:
    def body() -> None:
        world = World()
        first, second = b"1" * 100_000, b"2" * 100_000
        world.feed(SIZE.pack(100_000) + first, 1 << 20)
        world.feed(SIZE.pack(100_000) + second, 1 << 20)
        assert bytes(world.frames[0]) == first
        assert bytes(world.frames[1]) == second

    _in_a_loop(body)


def test_an_announced_size_is_believed_only_as_far_as_bytes_come() -> None:
    def body() -> None:
        world = World()
        world.feed(SIZE.pack(100_000_000) + b"x" * 10, 1 << 20)
        assert len(world.receiver.get_buffer(-1)) <= 1 << 20

    _in_a_loop(body)


def test_a_size_that_no_frame_has_ends_the_stream() -> None:
    def body() -> None:
        for size in (-1, 2**31 - 1):
            world = World()
            world.feed(SIZE.pack(size), 4)
            assert [type(error) for error in world.ends] == [MalformedBytes]

    _in_a_loop(body)


def test_the_end_of_the_stream_is_told() -> None:
    def body() -> None:
        world = World()
        world.receiver.connection_lost(None)
        assert world.ends == [None]
        assert world.receiver.closed.done()

    _in_a_loop(body)
