"""The properties files of a log directory. One that is malformed is corrupt."""

from ottla.model.properties import MalformedProperties, encode_properties, iter_properties
from ottla.storage.file_errors import CorruptFile

__all__ = ["decode_properties", "encode_properties"]


def decode_properties(text: bytes) -> dict[str, str]:
    """Read the pairs of a properties file. A key that occurs twice has its last value."""
    try:
        return {key: value for _, key, value in iter_properties(text)}
    except MalformedProperties as error:
        raise CorruptFile("properties", str(error)) from error
