"""What is raised about a config that cannot be used."""

from ottla.wire.error_code import ErrorCode


class InvalidConfig(ValueError):
    """A value does not fit its config. `where` says which line of which file it is in, if any."""

    def __init__(self, name: str, value: object, reason: str, where: str | None = None) -> None:
        prefix = f"{where}: " if where else ""
        super().__init__(f"{prefix}Invalid value {value} for configuration {name}: {reason}")
        self.name = name
        self.value = value
        self.reason = reason
        self.where = where


class UnusableConfigs(ValueError):
    """Several things are wrong with the configs of a node; `problems` has a sentence for each."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class ChangeRefused(Exception):
    """A change of configs is not allowed; a client gets the code and the message."""

    def __init__(self, error_code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error_code = error_code
        self.message = message
