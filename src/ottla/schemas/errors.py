"""What is wrong with a schema, or with a value that does not fit one."""


class InvalidSchema(ValueError):
    """A schema that cannot be parsed, or that uses something it does not define."""


class MisfitValue(ValueError):
    """A value that does not fit its schema. The message names the field."""


class UnreadableValue(ValueError):
    """Bytes that are not a value of their schema, or that name no schema."""
