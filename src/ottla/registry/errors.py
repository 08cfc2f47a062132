"""What the registry answers when it cannot do what it was asked, with Confluent's codes and texts."""

from ottla.satellite.errors import HttpError


class RegistryError(HttpError):
    """An answer that is an error. The first three digits of its code are the HTTP status."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(code if code < 1000 else code // 100, message, code)


def subject_not_found(subject: str) -> RegistryError:
    """No schema was ever registered there, or all are deleted."""
    return RegistryError(40401, f"Subject '{subject}' not found.")


def version_not_found(version: int | str) -> RegistryError:
    """The subject has no such version."""
    return RegistryError(40402, f"Version {version} not found.")


def schema_not_found(schema_id: int | str | None = None) -> RegistryError:
    """No schema has this id, or the subject does not have this schema."""
    return RegistryError(40403, "Schema not found" if schema_id is None else f"Schema {schema_id} not found")


def subject_soft_deleted(subject: str) -> RegistryError:
    """It is deleted already, but not permanently."""
    return RegistryError(
        40404, f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently"
    )


def subject_not_soft_deleted(subject: str) -> RegistryError:
    """What is deleted permanently must be deleted before."""
    return RegistryError(40405, f"Subject '{subject}' was not deleted first before being permanently deleted")


def version_soft_deleted(subject: str, version: int) -> RegistryError:
    """It is deleted already, but not permanently."""
    return RegistryError(
        40406,
        f"Subject '{subject}' Version {version} was soft deleted.Set permanent=true to delete permanently",
    )


def version_not_soft_deleted(subject: str, version: int) -> RegistryError:
    """What is deleted permanently must be deleted before."""
    return RegistryError(
        40407, f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted"
    )


def no_subject_config(subject: str) -> RegistryError:
    """The subject has no config of its own."""
    return RegistryError(40408, f"Subject '{subject}' does not have subject-level compatibility configured")


def no_subject_mode(subject: str) -> RegistryError:
    """The subject has no mode of its own."""
    return RegistryError(40409, f"Subject '{subject}' does not have subject-level mode configured")


def incompatible(subject: str, why: list[str]) -> RegistryError:
    """The schema does not fit earlier versions."""
    return RegistryError(
        40901,
        f'Schema being registered is incompatible with an earlier schema for subject "{subject}", details: '
        f"[{', '.join(why)}]",
    )


def invalid_schema(message: str) -> RegistryError:
    """The schema cannot be used."""
    return RegistryError(42201, message)


def invalid_version(version: str) -> RegistryError:
    """The path names no version."""
    return RegistryError(
        42202,
        f"The specified version '{version}' is not a valid version id. Allowed values are between "
        '[1, 2^31-1] and the string "latest"',
    )


def invalid_level() -> RegistryError:
    """There is no such compatibility level."""
    return RegistryError(
        42203,
        "Invalid compatibility level. Valid values are none, backward, forward, full, backward_transitive, "
        "forward_transitive, and full_transitive",
    )


def invalid_mode(message: str | None = None) -> RegistryError:
    """There is no such mode."""
    return RegistryError(
        42204, message or "Invalid mode. Valid values are READWRITE, READONLY, IMPORT and FORWARD."
    )


def not_permitted(message: str) -> RegistryError:
    """The mode does not allow it."""
    return RegistryError(42205, message)


def reference_exists(subject: str, version: int) -> RegistryError:
    """Other schemas use the schema."""
    return RegistryError(
        42206,
        "One or more references exist to the schema "
        f"{{magic=1,keytype=SCHEMA,subject={subject},version={version}}}.",
    )


def invalid_subject(subject: str) -> RegistryError:
    """The name is reserved or empty."""
    return RegistryError(42208, f"The specified subject '{subject}' is not a valid subject.")


def too_large() -> RegistryError:
    """The brokers do not take a record of this size."""
    return RegistryError(42209, "Register operation failed because schema is too large")


def context_not_empty(context: str) -> RegistryError:
    """There are subjects in the context."""
    return RegistryError(42211, f"The specified context '{context}' is not empty.")


def store_failed(message: str) -> RegistryError:
    """The cluster did not take a record."""
    return RegistryError(50001, message)


def timed_out(message: str) -> RegistryError:
    """The cluster did not answer in time."""
    return RegistryError(50002, message)


def forwarding_failed(message: str) -> RegistryError:
    """The instance that writes could not be reached."""
    return RegistryError(50003, message)


def no_leader() -> RegistryError:
    """No instance writes at the moment."""
    return RegistryError(50004, "Leader not known.")
