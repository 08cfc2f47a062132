"""Errors of the operating system, as storage understands them."""

import errno
from typing import Final

from ottla.world.disk import DiskError, Reason

_REASONS: Final = {
    errno.ENOSPC: Reason.NO_SPACE,
    errno.EDQUOT: Reason.NO_SPACE,
    errno.EFBIG: Reason.NO_SPACE,
    errno.EIO: Reason.IO_ERROR,
    errno.EROFS: Reason.READ_ONLY,
    errno.ENOENT: Reason.NOT_FOUND,
    errno.ENOTDIR: Reason.NOT_FOUND,
    errno.EEXIST: Reason.EXISTS,
    errno.ENOTEMPTY: Reason.EXISTS,
    errno.EACCES: Reason.DENIED,
    errno.EPERM: Reason.DENIED,
    errno.EAGAIN: Reason.LOCKED,
    errno.EMFILE: Reason.TOO_MANY_OPEN,
    errno.ENFILE: Reason.TOO_MANY_OPEN,
}


def disk_error(error: OSError, path: str, operation: str) -> DiskError:
    """Return what storage understands of an error of the operating system."""
    reason = _REASONS.get(error.errno or 0, Reason.OTHER)
    return DiskError(path, operation, reason, error.strerror or str(error))
