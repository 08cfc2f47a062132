"""Files that every Protobuf schema may import without registering them: Google's and Confluent's types."""

from functools import cache
from importlib import import_module
from typing import Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto

from ottla.schemas.protobuf.descriptors import to_elements
from ottla.schemas.protobuf.elements import FileElement
from ottla.schemas.protobuf.parsing import parse_proto

_CONFLUENT: Final = {
    "confluent/meta.proto": """
        syntax = "proto3"; package confluent;
        import "google/protobuf/descriptor.proto";
        option java_package = "io.confluent.protobuf"; option java_outer_classname = "MetaProto";
        message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3;
          repeated Rule rules = 4; }
        message Rule { string name = 1; string doc = 2; string expr = 3; string sql = 4; }
        extend google.protobuf.FileOptions { Meta file_meta = 1088; }
        extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
        extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
        extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
        extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }
    """,
    "confluent/type/decimal.proto": """
        syntax = "proto3"; package confluent.type;
        option java_package = "io.confluent.protobuf.type"; option java_multiple_files = true;
        option java_outer_classname = "DecimalProto";
        message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }
    """,
    "confluent/type/variant.proto": """
        syntax = "proto3"; package confluent.type;
        option java_package = "io.confluent.protobuf.type"; option java_multiple_files = true;
        option java_outer_classname = "VariantProto";
        message Variant { bytes metadata = 1; bytes value = 2; }
    """,
}
_GOOGLE: Final = ("google/protobuf/", "google/type/")


def find_well_known(path: str) -> FileElement | None:
    """Return the elements of a file that is known to everybody."""
    if path in _CONFLUENT:
        return parse_proto(_CONFLUENT[path])
    found = find_google_file(path)
    return None if found is None else to_elements(found)


@cache
def find_google_file(path: str) -> FileDescriptorProto | None:
    """Return the descriptor of a file that Google's libraries have."""
    if not path.startswith(_GOOGLE) or not path.endswith(".proto"):
        return None
    module = path.removesuffix(".proto").replace("/", ".") + "_pb2"
    if not all(part.isidentifier() for part in module.split(".")):
        return None
    try:
        found = import_module(module)
    except ImportError:
        return None
    return FileDescriptorProto.FromString(found.DESCRIPTOR.serialized_pb)
