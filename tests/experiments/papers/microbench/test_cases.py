import pytest

from experiments.papers.microbench.cases import (
    LOAD_BANDS,
    MOST_HOSTS,
    NUM_JOBS,
    NUM_LEVELS,
    Assumption,
    Case,
    bands_to,
    draw_case,
)
from experiments.papers.microbench.components import choices


def least_hottest(case: Case) -> float:
    """The load of the hottest link, all iterating as if alone, on the paths for which that is least."""
    fabric, jobs = case.scenario.topology.build(), case.snapshot.jobs
    found = []
    for choice in choices(case.snapshot):
        chosen, load = iter(choice), [0.0] * len(fabric.links)
        for job in jobs:
            sending_s = max(flow.size_bytes * 8 / 100e9 for flow in job.flows)
            profile = job.profile
            alone_s = max(profile.compute_s, profile.comm_start * profile.compute_s + sending_s)
            for flow in job.flows:
                for link in flow.candidates[next(chosen)]:
                    if {fabric.links[link].source, fabric.links[link].destination} <= set(fabric.switches):
                        load[link] += flow.size_bytes * 8 / 100e9 / alone_s
        found.append(max(load))
    return min(found)


@pytest.mark.parametrize("seed", range(1, len(LOAD_BANDS) + 1))
def test_cases_alternate_among_bands_and_have_their_load(seed: int) -> None:
    case = draw_case(seed, 2.5)
    low, high = LOAD_BANDS[seed - 1]
    assert low <= case.load < high
    assert least_hottest(case) == pytest.approx(case.load, rel=1e-6)


@pytest.mark.parametrize("assumption", Assumption)
def test_the_setup_is_the_papers(assumption: Assumption) -> None:
    for seed in range(1, 7):
        case = draw_case(seed, 1.2, assumption)
        fabric = case.scenario.topology.build()
        assert len(fabric.hosts) <= MOST_HOSTS
        assert fabric.gpus_per_host == 8
        assert 2 <= sum(switch.startswith("t") for switch in fabric.switches) <= 4
        assert sum(switch.startswith("a") for switch in fabric.switches) == 2
        assert len(case.snapshot.jobs) == NUM_JOBS
        assert case.snapshot.num_levels == NUM_LEVELS
        held = [host for job in case.scenario.jobs for host in job.hosts or ()]
        assert len(held) == len(set(held))
        for job in case.snapshot.jobs:
            assert [len(flow.candidates) for flow in job.flows].count(2) == 1
        window, longest_s = case.window, (case.window.to_s - case.window.from_s) / 100
        assert window.from_s == pytest.approx(10 * longest_s)
        assert all(0 <= job.arrival_s <= longest_s for job in case.snapshot.jobs)


def test_assumptions_have_the_stated_ranges() -> None:
    def starts(assumption: Assumption) -> list[float]:
        cases = [draw_case(seed, 0.6, assumption) for seed in range(1, 5)]
        return [job.profile.comm_start for case in cases for job in case.snapshot.jobs]

    assert set(starts(Assumption.IN_TURN)) == {1.0}
    assert 1.0 not in starts(Assumption.OVERLAPPED)
    for seed in range(1, 4):
        case = draw_case(seed, 0.6, Assumption.LARGE_SEND_LONGER)
        sending = [job.flows[0].size_bytes / job.profile.compute_s / job.gpus**0.5 for job in case.snapshot.jobs]
        assert max(sending) / min(sending) <= 1.25 / 0.8 * 1.001


def test_a_case_depends_only_on_its_seed() -> None:
    one = draw_case(5, 1.2)
    draw_case(6, 1.2)
    assert draw_case(5, 1.2) == one
    assert draw_case(8, 1.2).snapshot.jobs != one.snapshot.jobs


def test_bands_end_at_the_requested_load() -> None:
    assert bands_to(1.2) == LOAD_BANDS[:3]
    with pytest.raises(ValueError, match=r"expected at least 0\.6, got 0\.5"):
        bands_to(0.5)
