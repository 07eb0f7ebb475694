"""Sessions of random numbers: genuine packets count whatever somebody else sends, and none counts twice."""

import random

import pytest

from hostlib.wire.sequence_window import MAX_JUMP, SIZE, Arrival
from hostlib.wire.session_window import MAX_CLOCK_JUMP_NS, SessionWindow

SILENCE_S = 1.0
STEP_S = 0.1


@pytest.fixture
def window() -> SessionWindow:
    return SessionWindow(SILENCE_S)


def fed(window: SessionWindow, first: int, count: int, *, session: int = 7, from_s: float = 0.0) -> list[Arrival]:
    """What a sender's packets count as that come every tenth of a second."""
    return [window.note(session, first + number, 0, from_s + number * STEP_S) for number in range(count)]


def test_another_session_counts_once_the_one_in_force_is_silent(window: SessionWindow) -> None:
    fed(window, 0, 3)
    heard_s = 2 * STEP_S
    assert window.note(3, 0, 0, heard_s + 0.99 * SILENCE_S) is Arrival.OTHER_SESSION
    generation = window.generation
    assert window.note(3, 0, 0, heard_s + SILENCE_S) is Arrival.NEW
    assert (window.generation, window.window.received) == (generation + 1, 1)


@pytest.mark.parametrize("session", [0, (1 << 32) - 1])
def test_a_stray_packet_in_a_pause_shuts_out_the_sender_for_no_longer_than_the_silence(
    window: SessionWindow, session: int
) -> None:
    fed(window, 0, 3)
    assert window.note(session, 0, 0, 5.0) is Arrival.NEW
    arrivals = fed(window, 3, 20, from_s=5.05)
    num_lost = round(SILENCE_S / STEP_S)
    assert set(arrivals[:num_lost]) == {Arrival.OTHER_SESSION}
    assert set(arrivals[num_lost:]) == {Arrival.NEW}


def test_packets_of_the_session_before_do_not_count_again(window: SessionWindow) -> None:
    fed(window, 0, SIZE + 10)
    later_s = 100.0
    assert window.note(3, 0, 0, later_s) is Arrival.NEW
    for number in (0, 5, SIZE, SIZE + 9):
        later_s += 2 * SILENCE_S
        assert window.note(7, number, 0, later_s) is Arrival.DUPLICATE
        assert window.note(3, number + 1, 0, later_s).is_new
    assert window.note(7, 5 * SIZE, 0, later_s + SILENCE_S) is Arrival.NEW


def test_a_far_number_counts_after_an_outage_and_not_before(window: SessionWindow) -> None:
    fed(window, 0, 3)
    far = 1 << 31
    assert window.note(7, far, 0, 0.5) is Arrival.JUMP
    assert window.note(7, far, 0, 0.2 + SILENCE_S) is Arrival.NEW
    assert window.note(7, far + 1, 0, 0.3 + SILENCE_S) is Arrival.NEW
    assert window.window.missing == far - 3


def test_a_sender_that_was_pushed_aside_in_its_own_session_comes_back(window: SessionWindow) -> None:
    fed(window, 0, 3)
    for number in range(1, 20):
        assert window.note(7, 2 + number * MAX_JUMP, 0, 0.3) is Arrival.NEW
    arrivals = fed(window, 3, 40, from_s=0.35)
    num_lost = round(SILENCE_S / STEP_S)
    assert set(arrivals[:num_lost]) == {Arrival.TOO_OLD}
    assert set(arrivals[num_lost:]) == {Arrival.NEW}


def test_old_packets_that_somebody_repeats_do_not_count(window: SessionWindow) -> None:
    fed(window, 0, 3 * SIZE)
    later_s = 60.0
    for number in range(SIZE):
        later_s += SILENCE_S
        travelled_ns = round(later_s * 1e9)
        assert window.note(7, number, travelled_ns, later_s) is Arrival.TOO_OLD


def test_a_clock_that_jumps_counts_as_right_again(window: SessionWindow) -> None:
    window.note(7, 0, 0, 0.0)
    assert window.note(7, 1, MAX_CLOCK_JUMP_NS, 0.1) is Arrival.NEW
    assert window.note(7, 2, -1, 0.2) is Arrival.CLOCK
    assert window.note(7, 3, -1, 0.3) is Arrival.NEW


def test_no_number_counts_twice_whoever_sends_what(window: SessionWindow) -> None:
    draw = random.Random(1)
    sent, counted, now_s = 0, set[int](), 0.0
    for _ in range(20_000):
        now_s += draw.choice([0.01, 0.1, 2.0])
        match draw.randrange(4):
            case 0:  # somebody else's
                window.note(draw.randrange(1 << 32), draw.randrange(1 << 32), 0, now_s)
            case 1 if counted:  # repeated, at least a window later
                number = draw.choice([min(counted), max(counted) // 2])
                if number < sent - SIZE:
                    assert not window.note(7, number, 1 << 40, now_s).is_new
            case _:
                if window.note(7, sent, 0, now_s).is_new:
                    counted.add(sent)
                sent += 1
    assert len(counted) > sent / 2
