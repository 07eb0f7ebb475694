"""What a process knows of its iterations, while another thread begins anew."""

import threading
from typing import Any

from hostlib.torch.compressed_groups import CompressedGroups
from hostlib.torch.events import Event, Issue, StepEnd
from hostlib.torch.observation import Observation

_OPTIMIZER = 1


class _Recorder:
    """Steps that were recorded; the group is made anew in the moment in which the profile is complete."""

    def __init__(self) -> None:
        self.is_profiling = False
        self.steps = 0
        self.observation: Observation | None = None
        self.beginning: threading.Thread | None = None

    def take(self) -> list[Event]:
        self.steps += 1
        issue = Issue(self.steps, 1000 * self.steps - 500, "allreduce_", "0", 8, None, ())
        return [issue, StepEnd(1000 * self.steps, _OPTIMIZER)]

    def start_profiling(self) -> None:
        self.is_profiling = True

    def stop_profiling(self) -> None:
        if self.observation is not None and self.beginning is None:
            self.beginning = threading.Thread(target=self.observation.begin, args=(0,))
            self.beginning.start()
            self.beginning.join(0.2)
        self.is_profiling = False


class _Groups:
    """No process group, and no connection."""

    def __init__(self) -> None:
        self.roles: dict[str, str] = {}

    def unowned(self) -> frozenset[Any]:
        return frozenset()


class _Reports:
    def __init__(self) -> None:
        self.rounds: list[int] = []

    def report(self, round_number: int, text: str) -> None:
        assert text
        self.rounds.append(round_number)


def test_a_group_made_while_a_profile_ends_is_measured_and_reported() -> None:
    recorder: Any = _Recorder()
    groups: Any = _Groups()
    observation = recorder.observation = Observation(recorder, groups, 5, CompressedGroups())
    recorder.start_profiling()
    while recorder.beginning is None:
        observation.look()
    recorder.beginning.join()
    for _ in range(2):
        observation.look()
    reports = _Reports()
    observation.send_report(reports)
    assert reports.rounds == [0]
    assert recorder.is_profiling
