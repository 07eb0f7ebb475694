"""Words by which the parts of a fabric meet: those that a part has for itself, and those that all share."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from emulator.engine.events import NEVER_PS
from emulator.engine.packets import WORDS_IN_LINE
from emulator.engine.state import NONE, PACKET_ROW
from emulator.jit import inlined

# Words of ``border``, which a part has for itself.
NUMBER: Final = 0  # of the part
PARTS: Final = 1
LOOKAHEAD_PS: Final = 2
LAST_KEY: Final = 3  # the window's last key; and of the next moment, arrivals by links before
STEP_PLACE: Final = 4  # this one
HORIZON_PS: Final = 5  # so far all arrivals at hosts are known
ROUND: Final = 6
RUNS: Final = 7  # the present one's number
WINDOWS: Final = 8
CRITICAL_HOPS: Final = 9  # packet-hops of the part with the most, summed over windows
HOPS_BEFORE: Final = 10
SOUGHT: Final = 11  # row of the link to a host whose first completion is in this window, or NONE
CUTS: Final = 12  # links to other parts
HOST_LINKS: Final = 13  # links to hosts
LISTS: Final = 16  # pairs of a cut link and the part at its end; links to hosts; the first completion on each of them

# Words of ``meeting``, which all parts share: a line for orders, three lines for each part, then the mailboxes.
ORDERS: Final = 0  # counts runs
UNTIL_PS: Final = 1
IS_LEAVING: Final = 2
LINES: Final = WORDS_IN_LINE
PART_LINES: Final = 3  # of even rounds, of odd ones, and the number of runs that the part has ended
# Words of a mailbox; rows follow it. A row is the link, then the words of the packet.
COUNT, TAKEN, EARLIEST_PS = 0, 1, 2
MAIL_ROWS: Final = 2048
MAIL_WORDS: Final = -(-(1 + PACKET_ROW) // WORDS_IN_LINE) * WORDS_IN_LINE
MAILBOX_WORDS: Final = WORDS_IN_LINE + MAIL_ROWS * MAIL_WORDS


def meeting_of(parts: int) -> NDArray[np.int64]:
    """Return the words that parts share."""
    words = np.zeros(mailboxes(parts) + parts * parts * MAILBOX_WORDS + WORDS_IN_LINE, dtype=np.int64)
    meeting = words[-(words.ctypes.data // words.itemsize) % WORDS_IN_LINE :]
    meeting[mailboxes(parts) + EARLIEST_PS :: MAILBOX_WORDS] = NEVER_PS
    return meeting


def mailboxes(parts: int) -> int:
    """Return the word at which the mailboxes start."""
    return LINES + PART_LINES * parts * WORDS_IN_LINE


def border_of(
    number: int, parts: int, lookahead_ps: int, cuts: list[tuple[int, int]], host_links: list[int]
) -> NDArray[np.int64]:
    """Return the words of a part: ``cuts`` are its links to other parts, with the part at the end of each."""
    border = np.zeros(LISTS + 2 * len(cuts) + 2 * len(host_links), dtype=np.int64)
    border[NUMBER], border[PARTS], border[LOOKAHEAD_PS] = number, parts, lookahead_ps
    border[LAST_KEY] = border[SOUGHT] = NONE
    border[CUTS], border[HOST_LINKS] = len(cuts), len(host_links)
    border[LISTS : LISTS + 2 * len(cuts)] = [word for pair in cuts for word in pair]
    border[LISTS + 2 * len(cuts) :][: len(host_links)] = host_links
    border[LISTS + 2 * len(cuts) + len(host_links) :] = NEVER_PS
    return border


@inlined
def mailbox(parts: int, sender: int, receiver: int) -> int:
    """Return the word at which a mailbox starts."""
    return int(LINES + PART_LINES * parts * WORDS_IN_LINE + (sender * parts + receiver) * MAILBOX_WORDS)
