"""Ways to spoil a frame: what a broken or an evil peer might send. All of them are decided by one seed."""

from collections.abc import Callable, Sequence
from random import Random

Mutation = Callable[[bytearray, Random, Sequence[bytes]], None]

_HUGE = (
    b"\x7f\xff\xff\xff",  # the largest int32
    b"\x80\x00\x00\x00",  # the smallest
    b"\xff\xff\xff\xff",  # -1, which is null
    b"\x00\x10\x00\x00",  # a million
    b"\xff\xff\xff\xff\x07",  # the largest int32 as a varint
    b"\xff\xff\xff\xff\x0f",  # 32 bits
    b"\xff\xff\xff\xff\xff\x01",  # a varint that does not end in time
    b"\x80\x80\x80\x80\x00",  # zero in five bytes
    b"\x7f\xff",  # the largest int16
    b"\xff\xfe",  # -2: neither null nor a length
)


def flip_bits(frame: bytearray, random: Random, _others: Sequence[bytes]) -> None:
    """Flip one to eight bits anywhere."""
    for _ in range(random.randint(1, 8)):
        frame[random.randrange(len(frame))] ^= 1 << random.randrange(8)


def truncate(frame: bytearray, random: Random, _others: Sequence[bytes]) -> None:
    """Cut the end off."""
    del frame[random.randrange(len(frame)) :]


def insert_bytes(frame: bytearray, random: Random, _others: Sequence[bytes]) -> None:
    """Put some random bytes somewhere."""
    position = random.randrange(len(frame))
    frame[position:position] = random.randbytes(random.randint(1, 16))


def delete_bytes(frame: bytearray, random: Random, _others: Sequence[bytes]) -> None:
    """Take some bytes away from somewhere."""
    position = random.randrange(len(frame))
    del frame[position : position + random.randint(1, 16)]


def announce_too_much(frame: bytearray, random: Random, _others: Sequence[bytes]) -> None:
    """Write a huge, negative or endless count or length over what is there."""
    huge = random.choice(_HUGE)
    position = random.randrange(len(frame))
    frame[position : position + len(huge)] = huge


def spoil_tags(frame: bytearray, random: Random, _others: Sequence[bytes]) -> None:
    """Write tagged fields where there may be none: repeated, out of order, too long, or too many."""
    tags = bytearray()
    count = random.choice((1, 2, 3, 64, 65, 127, 255))
    for _ in range(min(count, 8)):
        size = random.choice((0, 1, 2, 120))
        tags += bytes((random.randrange(4), size)) + bytes(min(size, random.randrange(4)))
    position = random.choice((len(frame) - 1, random.randrange(len(frame))))
    frame[position : position + 1] = bytes((count,)) + tags


def splice(frame: bytearray, random: Random, others: Sequence[bytes]) -> None:
    """Go on with the end of another frame."""
    other = random.choice(others)
    del frame[random.randrange(len(frame)) :]
    frame += other[random.randrange(len(other)) :]


def repeat_a_part(frame: bytearray, random: Random, _others: Sequence[bytes]) -> None:
    """Say something twice, or many times."""
    start = random.randrange(len(frame))
    part = frame[start : start + random.randint(1, 64)]
    frame[start:start] = part * random.choice((1, 1, 1, 50))


MUTATIONS: tuple[Mutation, ...] = (
    flip_bits, truncate, insert_bytes, delete_bytes, announce_too_much, spoil_tags, splice, repeat_a_part,
)  # fmt: skip


def mutate(frame: bytes, random: Random, others: Sequence[bytes], keep: int) -> bytes:
    """Return the frame spoilt by one to three mutations. The first `keep` bytes mostly stay as they are.

    Spoilt headers are refused at once, so that nearly all frames would die there if they were not kept.
    """
    kept = 0 if random.random() < 0.1 else min(keep, len(frame))
    body = bytearray(frame[kept:])
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        if body:
            random.choice(MUTATIONS)(body, random, others)
    return frame[:kept] + bytes(body)
