"""Protobuf schemas: .proto texts and descriptors, printed and compared as Confluent's registry does."""
