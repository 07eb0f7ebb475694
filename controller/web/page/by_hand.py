"""Rows of what operators have decided by hand: a pause, what is drained, and what is pinned."""

from collections.abc import Iterable, Mapping

from controller.planning.draining import DrainState
from controller.planning.intervening import PinState
from controller.planning.interventions import Pause
from topologies.printable import printable

_TEXT_LIMIT = 300
_JOBS_NAMED = 64


def drain_rows(states: Iterable[DrainState]) -> Mapping[str, object]:
    """What is drained, by its name: since when, by whom, and what it waits for."""
    return {
        str(state.drain.target): {
            "since_s": state.drain.since_s,
            "by": state.drain.by,
            "forced": state.drain.is_forced,
            "waits_for": [printable(each, _TEXT_LIMIT) for each in state.waits_for],
            "jobs": state.jobs[:_JOBS_NAMED],
        }
        for state in states
    }


def pin_rows(states: Iterable[PinState]) -> Mapping[str, object]:
    """What is pinned, by JOB or JOB/GROUP/NUMBER: the level or the path, until when, and why it does not hold."""
    return {
        state.pin.target: {
            "job": state.pin.job,
            "level": state.pin.level,
            "path": state.pin.path,
            "since_s": state.pin.since_s,
            "until_s": state.pin.until_s,
            "by": state.pin.by,
            "problem": printable(state.problem, _TEXT_LIMIT),
        }
        for state in states
    }


def pause_row(pause: Pause) -> dict[str, object]:
    """Since when planning is paused, by whom and why, and whether all rules are released."""
    texts = {"by": printable(pause.by, _TEXT_LIMIT), "reason": printable(pause.reason, _TEXT_LIMIT)}
    return {"since_s": pause.since_s, "released": pause.is_released, **texts}
