"""What is known of a log before its directory is looked at, and what that says about its files."""

from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.model.ids import NO_OFFSET, Offset, TopicPartition
from ottla.storage.config import LogConfig
from ottla.storage.damages.stopped_files import StoppedLog

if TYPE_CHECKING:
    from ottla.storage.damages.repair import Filler

_EVERYTHING: Final = Offset(1 << 62)


class LoadRequest(NamedTuple):
    """What is known of a log before its directory is looked at."""

    path: str
    topic_partition: TopicPartition
    config: LogConfig
    # From the checkpoints of the log directory.
    recovery_point: Offset = Offset(0)
    log_start_offset: Offset = Offset(0)
    is_clean: bool = False
    now_ms: int = 0
    # How far it was compacted, whatever its settings say now.
    cleaned_to: Offset = Offset(0)
    # What the node noted after its last sync (`synced_offsets`), or -1.
    synced_offset: Offset = NO_OFFSET
    # What the files were at a clean stop (`stopped_files`).
    stopped: StoppedLog | None = None
    # All of it had been synced, though no file is taken on trust.
    all_was_synced: bool = False
    # Damage is not repaired: `DamagedLog` is raised.
    refuses_damage: bool = False
    # Makes the batch that takes the place of what is lost.
    make_filler: "Filler | None" = None

    @property
    def knows_synced(self) -> bool:
        """Say whether anything is known of how far it was synced."""
        return self.is_clean or self.all_was_synced or self.synced_offset >= 0

    @property
    def promised(self) -> Offset:
        """The log has to reach up to here. It was synced, and readers may have seen it."""
        if self.stopped is not None:
            return self.stopped.log_end_offset
        return self.recovery_point if self.synced_offset < 0 else self.synced_offset

    @property
    def synced(self) -> Offset:
        """Whatever cannot be right below this is damage, and no write that a crash has torn."""
        if self.is_clean or self.all_was_synced:
            return _EVERYTHING
        return max(self.recovery_point, self.synced_offset)
