"""The names of what cases may be drawn from, as commands spell them."""

from enum import StrEnum


class Assumption(StrEnum):
    """Ours, and others, to see what hangs on it: ``experiments.papers.microbench.cases`` says what each is."""

    OURS = "ours"
    IN_TURN = "in-turn"
    OVERLAPPED = "overlapped"
    LARGE_SEND_LONGER = "large-send-longer"
