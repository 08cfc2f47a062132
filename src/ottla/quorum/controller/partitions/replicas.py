"""Which brokers may hold and lead replicas, and in which of their directories."""

from collections.abc import Mapping

from ottla.metadata.directory_ids import LOST, MIGRATING, UNASSIGNED
from ottla.metadata.features import DIRECTORIES_FROM
from ottla.model.uuid import Uuid
from ottla.quorum.controller.decision import ControllerView
from ottla.wire.metadata_records.brokers import RegisterBrokerRecord

Brokers = Mapping[int, RegisterBrokerRecord]


def is_active(brokers: Brokers, broker_id: int) -> bool:
    """Say whether a broker may lead: registered, not fenced, not about to stop."""
    broker = brokers.get(broker_id)
    return broker is not None and not broker.fenced and not broker.in_controlled_shutdown


def has_directory_online(brokers: Brokers, broker_id: int, directory: Uuid) -> bool:
    """Say whether a broker can serve what lies in a directory."""
    broker = brokers.get(broker_id)
    if broker is None or directory == LOST:
        return False
    # Registrations from before directory ids name none.
    return directory in (UNASSIGNED, MIGRATING) or not broker.log_dirs or directory in broker.log_dirs


def takes_replicas(broker: RegisterBrokerRecord) -> bool:
    """Say whether a broker may get new replicas: it is not about to stop, and has a directory for them.

    A directory that is cordoned takes none (KIP-1066). A broker that has stopped is as good as any other.
    """
    if broker.in_controlled_shutdown and not broker.fenced:
        return False
    cordoned = broker.cordoned_log_dirs or ()
    return not broker.log_dirs or any(directory not in cordoned for directory in broker.log_dirs)


def default_directory(view: ControllerView, broker_id: int) -> Uuid:
    """Return where a new replica lies, as far as the controller can know: a broker may have one directory."""
    if view.metadata_version < DIRECTORIES_FROM:
        return MIGRATING
    broker = view.image.brokers.get(broker_id)
    if broker is None:
        return UNASSIGNED
    if not broker.log_dirs:
        return MIGRATING
    return broker.log_dirs[0] if len(broker.log_dirs) == 1 else UNASSIGNED
