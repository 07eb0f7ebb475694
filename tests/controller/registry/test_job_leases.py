"""A job's lease runs down only while a controller is running, whichever it is."""

from hypothesis import given
from hypothesis import strategies as st

from controller.registry.job_leases import JobLeases

LEASE_S = 8.0
PERIOD_S = JobLeases(LEASE_S).silence_period_s


def _live(life_s: float, told_s: float, heartbeats_s: tuple[float, ...] = ()) -> tuple[float, float | None]:
    """A controller that lives so long: how silent a job is for the next one, and when its lease has ended here."""
    leases = JobLeases(LEASE_S)
    leases.restore("gpt", 0.0, told_s)
    steps_s = [step * PERIOD_S for step in range(1, int(life_s / PERIOD_S) + 1)]
    for time_s, is_heartbeat in sorted([(s, False) for s in steps_s] + [(s, True) for s in heartbeats_s if s < life_s]):
        if leases.ended(time_s):
            return leases.recorded_silence_s("gpt"), leases.end_s("gpt")
        if is_heartbeat:
            leases.renew("gpt", time_s)
            leases.record_silence("gpt", 0.0)
        for name, silent_s in tuple(leases.silences_s(time_s)):
            leases.record_silence(name, silent_s)
    end_s = leases.end_s("gpt")
    assert end_s is not None
    return leases.recorded_silence_s("gpt"), end_s if end_s <= life_s else None


@given(st.lists(st.floats(PERIOD_S, LEASE_S), max_size=12))
def test_a_dead_job_lasts_one_lease_over_all_controllers_and_a_period_of_each(lives_s: list[float]) -> None:
    told_s = lived_s = 0.0
    for number, life_s in enumerate([*lives_s, 2 * LEASE_S]):
        told_s, end_s = _live(life_s, told_s)
        if end_s is not None:
            assert lived_s + end_s + 1e-9 >= LEASE_S
            assert lived_s + end_s < LEASE_S + number * PERIOD_S + 1e-9
            return
        lived_s += life_s
    raise AssertionError("its lease has not ended")


@given(st.lists(st.floats(0, 5 * LEASE_S), max_size=12), st.floats(0.01, LEASE_S / 4))
def test_a_job_with_regular_heartbeats_is_never_lost(lives_s: list[float], first_s: float) -> None:
    """Whatever the lives of controllers; how long there was none between them does not count at all."""
    told_s = 0.0
    for life_s in lives_s:
        heartbeats_s = tuple(first_s + number * LEASE_S / 3 for number in range(20))
        told_s, end_s = _live(life_s, told_s, heartbeats_s)
        assert end_s is None or life_s < first_s


def test_jobs_with_regular_heartbeats_have_no_recorded_silence() -> None:
    leases = JobLeases(LEASE_S)
    leases.renew("gpt", 0.0)
    assert not [*leases.silences_s(LEASE_S / 3)]
    assert [*leases.silences_s(LEASE_S / 2)] == [("gpt", LEASE_S / 2)]
    leases.renew("gpt", LEASE_S / 2)
    assert not [*leases.silences_s(LEASE_S / 2)]
