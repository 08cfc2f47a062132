"""Schemas as a registry knows them: Avro, JSON Schema and Protobuf, parsed, printed and compared.

Nothing here uses a network. The texts of references come from the caller.
"""
