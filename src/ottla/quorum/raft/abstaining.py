"""A voter whose log was damaged: it abstains until it has again all that it may have acknowledged.

It has set its log aside, and kept epoch and vote (`quorum-state`). A file beside them says that it abstains,
from before the log is set aside until it votes again, whatever crashes in between. While it abstains it gives
no vote and no pre-vote, and does not stand for election. It fetches like any voter, and the leader may count
what it has: that is on its disk.

Nothing is lost by that. What was committed is on a majority. A leader has the votes of a majority
in which this replica is not. Two majorities have a voter in common, and here it is another one than this.
That holds however many voters abstain. If they are too many, nobody is elected, and everybody waits.

It votes again when a leader has nothing more to give: it has then the leader's whole log, up to an end that
is later than its start. The leader's epoch is its own or a later one. So that log has all that is committed
because this replica has acknowledged it:

- to a leader of an earlier epoch: it was committed, so later leaders have it; or it never will be,
- to this leader: a leader cuts nothing off. It may still count on what this replica had acknowledged, and
  commit it later. So the high watermark would not do.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.quorum.raft.replica import Replica


def note_answer(replica: "Replica", records: bytes) -> None:
    """Vote again if a leader had nothing more to give. A fetch is sent only from what is synced."""
    if replica.abstains and not records:
        replica.vote_again()
