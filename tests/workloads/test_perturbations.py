import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.perturbations import ReportingError
from workloads.scenario import ProfileError

SIZES = st.sampled_from((0.0, 0.05, 0.2, 0.5, 0.99))


@given(SIZES, SIZES, SIZES, st.integers(1, 100), st.sampled_from(("a", "gpt-1")))
def test_every_number_is_off_by_just_its_error(work: float, size: float, overlap: float, seed: int, job: str) -> None:
    error = ProfileError(work=work, bytes=size, overlap=overlap)
    drawn = ReportingError.drawn(error, seed, job)
    assert drawn == ReportingError.drawn(error, seed, job)
    for factor, wrong in ((drawn.work, work), (drawn.bytes, size), (drawn.overlap, overlap)):
        assert abs(factor - 1) == pytest.approx(wrong)
    larger = ReportingError.drawn(ProfileError(work=0.995), seed, job)
    assert work == 0 or (larger.work > 1) == (drawn.work > 1)


def test_seeds_and_jobs_differ() -> None:
    error = ProfileError(work=0.2, bytes=0.2, overlap=0.2)
    assert len({ReportingError.drawn(error, seed, job) for seed in range(8) for job in ("a", "b", "c")}) == 8


@pytest.mark.parametrize(
    ("factor", "comm_start", "told"),
    [(1.0, 0.4, 0.4), (1.5, 0.4, 0.1), (0.5, 0.4, 0.7), (1.5, 0.2, 0.0), (1.5, 1.0, 1.0)],
)
def test_overlap_is_what_is_left_of_the_computation(factor: float, comm_start: float, told: float) -> None:
    assert ReportingError(overlap=factor).reported_comm_start(comm_start) == pytest.approx(told)


def test_a_flow_that_sends_is_never_told_to_send_nothing() -> None:
    assert [ReportingError(bytes=0.5).reported_bytes(size) for size in (1, 100, 1e10)] == [1, 50, 5_000_000_000]
