"""Messages to bytes and back. Codecs are compiled per message and version at first use, then kept."""

import struct
from typing import Any, TypeVar

from ottla.wire.compiling.decoder import compile_decoder
from ottla.wire.compiling.encoder import compile_encoder
from ottla.wire.declare import spec_of
from ottla.wire.errors import MalformedBytes, Unencodable, WireError
from ottla.wire.explain import find_bad_field

T = TypeVar("T")
Readable = bytes | bytearray | memoryview

_BAD_BYTES = (struct.error, IndexError, UnicodeDecodeError)
_BAD_VALUES = (struct.error, TypeError, AttributeError, UnicodeEncodeError, ValueError)


_DECODERS: dict[tuple[type[Any], int], Any] = {}
_ENCODERS: dict[tuple[type[Any], int], Any] = {}
_PATIENT_DECODERS: dict[tuple[type[Any], int], Any] = {}
_PATIENT_ENCODERS: dict[tuple[type[Any], int], Any] = {}


def decoder_of(cls: type[Any], version: int) -> Any:
    """Return the compiled reader of `cls` in `version`: `(buffer, position, end) -> (message, position)`."""
    decoder = _DECODERS.get((cls, version))
    if decoder is None:
        _check_version(cls, version, MalformedBytes)
        decoder = _DECODERS[cls, version] = compile_decoder(cls, version)
    return decoder


def encoder_of(cls: type[Any], version: int) -> Any:
    """Return the compiled writer of `cls` in `version`: `(message, add) -> None`."""
    encoder = _ENCODERS.get((cls, version))
    if encoder is None:
        _check_version(cls, version, Unencodable)
        encoder = _ENCODERS[cls, version] = compile_encoder(cls, version)
    return encoder


def patient_decoder_of(cls: type[Any], version: int) -> Any:
    """Return the reader as a generator, for a message that may be large. See `compile_decoder`."""
    return _patient(_PATIENT_DECODERS, compile_decoder, cls, version)


def patient_encoder_of(cls: type[Any], version: int, message: type[Any] | None = None) -> Any:
    """Return the writer as a generator; if `cls` is a struct, as it lies in `message`."""
    return _patient(_PATIENT_ENCODERS, compile_encoder, cls, version, message)


def _patient(known: dict[Any, Any], compile_codec: Any, cls: type[Any], version: int, *more: Any) -> Any:
    codec = known.get((cls, version))
    if codec is None:
        codec = known[cls, version] = compile_codec(cls, version, *more, patient=True)
    return codec


def decode_from(cls: type[T], data: Readable, version: int, position: int = 0) -> tuple[T, int]:
    """Read a message that starts at `position`. Return it and where it ends."""
    view = memoryview(data)
    try:
        message, stop = decoder_of(cls, version)(view, position, len(view))
    except _BAD_BYTES as error:
        raise MalformedBytes(f"{cls.__name__} v{version}: {error}") from error
    return message, stop


def decode(cls: type[T], data: Readable, version: int) -> T:
    """Read a message that fills `data`."""
    message, stop = decode_from(cls, data, version)
    if stop != len(data):
        raise MalformedBytes(f"{cls.__name__} v{version}: {len(data) - stop} bytes are left over")
    return message


def encode_pieces(message: Any, version: int) -> list[Any]:
    """Write a message as a list of pieces. Record batches among them are the very objects given."""
    pieces: list[Any] = []
    try:
        encoder_of(type(message), version)(message, pieces.append)
    except Unencodable:
        raise
    except _BAD_VALUES as error:
        raise Unencodable(f"{find_bad_field(message, version) or type(message).__name__}: {error}") from error
    return pieces


def encode(message: Any, version: int) -> bytes:
    """Write a message."""
    return b"".join(encode_pieces(message, version))


def encode_struct(item: Any, message: type[Any], version: int) -> bytes:
    """Write a struct as it lies in a message of this type: to be part of `EncodedItems`."""
    key = (type(item), version)
    encoder = _ENCODERS.get(key)
    if encoder is None:
        _check_version(message, version, Unencodable)
        encoder = _ENCODERS[key] = compile_encoder(type(item), version, message)
    pieces: list[Any] = []
    try:
        encoder(item, pieces.append)
    except _BAD_VALUES as error:
        raise Unencodable(f"{type(item).__name__} in version {version}: {error}") from error
    return b"".join(pieces)


def _check_version(cls: type[Any], version: int, error: type[WireError]) -> None:
    if version not in spec_of(cls).versions:
        raise error(f"{cls.__name__} has no version {version}: it has {spec_of(cls).versions}")
