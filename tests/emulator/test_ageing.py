"""Entries that age: each hit counts, to the picosecond, and whoever is idle is told of so."""

from functools import cache
from random import Random

import pytest

from emulator import ageing
from emulator.ageing import NEVER_PS, SHORTEST_TIMEOUT_PS, IdleEntry, IdleTimers
from emulator.compiler.program import compile_program
from emulator.entries import ActionCall, EntryKey, FieldMatch, InvalidRequestError, NotFoundError
from emulator.fabric import EmulatedFabric
from tests.bmv2.small_programs import AGEING, PASSING, EmulatedProgram
from topologies.fabric import Cable, Fabric

MS = 1_000_000_000
LEARNED, FLOWS, ROUTES = "ingress.learned", "ingress.flows", "ingress.routes"
FORWARD, COUNTED = ActionCall("ingress.forward", (2,)), ActionCall("ingress.counted", (3,))


@cache
def compiled() -> EmulatedProgram:
    """The program, compiled once."""
    return EmulatedProgram(AGEING)


class Lab:
    """A switch with an empty pipeline, and times relative to its start."""

    def __init__(self) -> None:
        self.emulated = compiled()
        self.emulated.clear()
        self.switch, self.fabric = self.emulated.control, self.emulated.fabric
        self.start_ps = self.fabric.now_ps
        self._link = next(link.index for link in self.fabric.fabric.links if link.destination_port == 1)

    @property
    def now_ps(self) -> int:
        """Time since the start."""
        return self.fabric.now_ps - self.start_ps

    def run(self, until_ps: int) -> None:
        """Let time pass until then."""
        self.fabric.run(self.start_ps + until_ps)

    def packet(self, source: int = 0, target: int = 0) -> None:
        """Let a packet arrive now."""
        self.fabric.inject(self._link, bytes([source, target]))
        self.fabric.run(self.fabric.now_ps)

    def idle(self) -> list[tuple[str, EntryKey, int]]:
        """What has become idle, and when."""
        return [(entry.table, entry.key, entry.time_ps - self.start_ps) for entry in self.switch.idle_entries()]


def exact(value: int) -> EntryKey:
    """A key of the table with an exact match."""
    return EntryKey((FieldMatch(value, 0xFF),))


def ternary(value: int, mask: int, priority: int = 1) -> EntryKey:
    """A key of the ternary table."""
    return EntryKey((FieldMatch(value, mask),), priority)


def test_an_entry_that_nobody_hits_is_told_once_in_every_timeout() -> None:
    lab = Lab()
    lab.switch.insert(LEARNED, exact(1), FORWARD)
    lab.switch.set_idle_timeout(LEARNED, exact(1), 10 * MS)
    lab.run(10 * MS - 1)
    assert lab.idle() == []
    lab.run(10 * MS)
    assert lab.idle() == [(LEARNED, exact(1), 10 * MS)]
    lab.run(45 * MS)
    assert lab.idle() == [(LEARNED, exact(1), time) for time in (20 * MS, 30 * MS, 40 * MS)]
    assert lab.idle() == []


def test_a_hit_puts_off_the_moment_by_its_own_time() -> None:
    lab = Lab()
    lab.switch.insert(LEARNED, exact(1), FORWARD)
    lab.switch.insert(LEARNED, exact(2), FORWARD)
    lab.switch.set_idle_timeout(LEARNED, exact(1), 10 * MS)
    lab.switch.set_idle_timeout(LEARNED, exact(2), 10 * MS)
    lab.run(3 * MS + 7)
    lab.packet(source=1)
    lab.run(9 * MS)
    lab.packet(source=3)  # hits neither
    lab.run(13 * MS + 6)
    assert lab.idle() == [(LEARNED, exact(2), 10 * MS)]
    lab.run(13 * MS + 7)
    assert lab.idle() == [(LEARNED, exact(1), 13 * MS + 7)]
    assert lab.switch.idle_ps(LEARNED, exact(1)) == 10 * MS


def test_a_hit_at_the_very_moment_comes_first() -> None:
    lab = Lab()
    lab.switch.insert(LEARNED, exact(1), FORWARD)
    lab.switch.set_idle_timeout(LEARNED, exact(1), 10 * MS)
    lab.run(10 * MS - 1)
    lab.fabric.inject(lab._link, bytes([1, 0]))
    lab.run(10 * MS + 5)
    assert lab.idle() == []
    lab.run(20 * MS - 1)
    assert lab.idle() == [(LEARNED, exact(1), 20 * MS - 1)]


def test_entries_keep_their_times_when_a_table_grows_and_others_leave() -> None:
    lab = Lab()
    for number in range(16):
        lab.run(number * MS)
        lab.switch.insert(LEARNED, exact(number), FORWARD)
        lab.switch.insert(FLOWS, ternary(number, 0xFF, 20 - number if number % 2 else 1), COUNTED)
    for number in range(0, 16, 3):
        lab.switch.delete(LEARNED, exact(number))
        lab.switch.delete(FLOWS, ternary(number, 0xFF, 20 - number if number % 2 else 1))
    lab.run(20 * MS)
    lab.packet(source=4, target=5)
    lab.run(21 * MS)
    for number in sorted({*range(16)} - {*range(0, 16, 3)}):
        key = ternary(number, 0xFF, 20 - number if number % 2 else 1)
        assert lab.switch.idle_ps(LEARNED, exact(number)) == (1 if number == 4 else 21 - number) * MS
        assert lab.switch.idle_ps(FLOWS, key) == (1 if number == 5 else 21 - number) * MS


def test_the_entry_that_wins_is_hit_alone() -> None:
    lab = Lab()
    lab.switch.insert(FLOWS, ternary(0, 0, 1), COUNTED)
    lab.switch.insert(FLOWS, ternary(7, 7, 2), COUNTED)
    lab.run(5 * MS)
    lab.packet(target=7)
    assert lab.switch.idle_ps(FLOWS, ternary(0, 0, 1)) == 5 * MS
    assert lab.switch.idle_ps(FLOWS, ternary(7, 7, 2)) == 0
    assert lab.switch.direct_counter(FLOWS, ternary(7, 7, 2)).packets == 1


def test_a_timeout_can_be_changed_taken_away_and_given_again() -> None:
    lab = Lab()
    lab.switch.insert(LEARNED, exact(1), FORWARD)
    lab.switch.set_idle_timeout(LEARNED, exact(1), 10 * MS)
    lab.run(2 * MS)
    lab.switch.set_idle_timeout(LEARNED, exact(1), 30 * MS)
    lab.run(30 * MS)
    assert lab.idle() == [(LEARNED, exact(1), 30 * MS)]
    lab.switch.set_idle_timeout(LEARNED, exact(1), 5 * MS)
    lab.run(36 * MS)
    assert lab.idle() == [(LEARNED, exact(1), 35 * MS)]
    lab.switch.set_idle_timeout(LEARNED, exact(1), 0)
    lab.run(100 * MS)
    assert lab.idle() == []
    lab.switch.set_idle_timeout(LEARNED, exact(1), 200 * MS)
    lab.run(200 * MS)
    assert lab.idle() == [(LEARNED, exact(1), 200 * MS)]
    lab.switch.set_idle_timeout(LEARNED, exact(1), 1)
    lab.run(200 * MS + SHORTEST_TIMEOUT_PS)
    assert lab.idle() == [(LEARNED, exact(1), 200 * MS + SHORTEST_TIMEOUT_PS)]


def test_what_has_left_is_not_told_of() -> None:
    lab = Lab()
    for number in (1, 2):
        lab.switch.insert(LEARNED, exact(number), FORWARD)
        lab.switch.set_idle_timeout(LEARNED, exact(number), 10 * MS)
    lab.switch.delete(LEARNED, exact(1))
    lab.run(15 * MS)
    lab.switch.insert(LEARNED, exact(1), FORWARD)  # the same key, without a timeout
    lab.switch.delete(LEARNED, exact(2))
    assert lab.idle() == []
    lab.switch.set_idle_timeout(LEARNED, exact(1), 10 * MS)
    lab.switch.clear()
    lab.run(100 * MS)
    assert lab.idle() == []
    assert lab.fabric.next_event_ps >= NEVER_PS


def test_the_next_moment_is_an_event_of_the_fabric() -> None:
    lab = Lab()
    lab.switch.insert(LEARNED, exact(1), FORWARD)
    lab.switch.set_idle_timeout(LEARNED, exact(1), 10 * MS)
    assert lab.fabric.next_event_ps == lab.start_ps + 10 * MS


@pytest.mark.parametrize("wrong", ["table", "entry"])
def test_an_entry_that_does_not_age_is_named(wrong: str) -> None:
    lab = Lab()
    lab.switch.insert(ROUTES, exact(1), FORWARD)
    if wrong == "table":
        with pytest.raises(InvalidRequestError, match=r"'ingress\.routes' do not age"):
            lab.switch.set_idle_timeout(ROUTES, exact(1), MS)
        with pytest.raises(InvalidRequestError, match=r"'ingress\.routes' do not age"):
            lab.switch.idle_ps(ROUTES, exact(1))
    else:
        with pytest.raises(NotFoundError):
            lab.switch.set_idle_timeout(LEARNED, exact(1), MS)


def test_any_hits_and_timeouts_are_told_as_by_a_plain_scan() -> None:
    """In steps of a millisecond: entries are hit, change their timeouts, come and go."""
    random, lab = Random(7), Lab()
    hit: dict[int, int] = {}
    told: dict[int, int] = {}
    timeouts: dict[int, int] = {}

    def look(step: int) -> None:
        expected = []
        for number, timeout in timeouts.items():
            if timeout and max(hit[number], told.get(number, -1)) + timeout <= step:
                told[number] = step
                expected.append((LEARNED, exact(number), step * MS))
        lab.run(step * MS)
        assert sorted(lab.idle()) == sorted(expected)

    for step in range(400):
        look(step)
        number = random.randrange(8)
        kind = random.randrange(6)
        if number not in timeouts:
            lab.switch.insert(LEARNED, exact(number), FORWARD)
            hit[number], timeouts[number] = step, 0
        elif kind == 0:
            lab.switch.delete(LEARNED, exact(number))
            del timeouts[number]
            told.pop(number, None)
        elif kind < 3:
            timeouts[number] = random.choice([0, 1, 2, 5, 17, 60])
            lab.switch.set_idle_timeout(LEARNED, exact(number), timeouts[number] * MS)
            if not timeouts[number]:
                told.pop(number, None)
        else:
            lab.packet(source=number)
            hit[number] = step
        look(step)  # a new timeout may be over already


def test_stopped_timers_leave_no_rest_behind() -> None:
    timers = IdleTimers()
    told: list[IdleEntry] = []
    for _ in range(10_000):
        timer = timers.start(1000 * MS, lambda: 0, lambda now_ps: told.append(IdleEntry("t", exact(1), now_ps)))
        timers.change(timer, 500 * MS)
        timers.stop(timer)
    assert len(timers._queue) < 200
    timers.run(10_000 * MS)
    assert told == []


@pytest.mark.slow
def test_several_cores_hit_and_tell_as_one_does() -> None:
    names = ("s0", "s1", "s2")
    cables = [Cable((f"h{n}", name), 1e11, 1e-6) for n, name in enumerate(names)]
    cables += [Cable(pair, 1e11, 2e-6) for pair in (("s0", "s1"), ("s1", "s2"))]
    fabric = Fabric(("h0", "h1", "h2"), names, tuple(cables), 1)
    program = compile_program(AGEING.json.read_text())

    def told(cores: int) -> list[object]:
        random, emulated = Random(8), EmulatedFabric(fabric, program, cores=cores)
        found: list[object] = []
        for switch in emulated.switches.values():
            switch.clear()
            for number in range(8):
                ports = sorted(switch.ports)
                switch.insert(LEARNED, exact(number), ActionCall("ingress.forward", (random.choice(ports),)))
                switch.set_idle_timeout(LEARNED, exact(number), random.randint(1, 4) * MS)
        for _ in range(200):
            emulated.inject(random.randrange(len(fabric.links)), bytes([random.randrange(10), 0]))
            emulated.run(emulated.now_ps + random.randrange(MS // 4))
        emulated.run(emulated.now_ps + 5 * MS)
        for switch in emulated.switches.values():
            found.append([switch.last_hit_ps(LEARNED, exact(number)) for number in range(8)])
            found.append(switch.idle_entries())
        return found

    serial = told(1)
    assert told(2) == serial
    assert told(3) == serial


def test_so_many_idle_entries_wait_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ageing, "MOST_AT_ONCE", 2)
    monkeypatch.setattr(ageing, "MOST_WAITING", 5)
    lab = Lab()
    for number in range(3):
        lab.switch.insert(LEARNED, exact(number), FORWARD)
        lab.switch.set_idle_timeout(LEARNED, exact(number), 10 * MS)
    lab.run(25 * MS)
    times = [[time for _, _, time in lab.idle()] for _ in range(4)]
    assert times == [[10 * MS] * 2, [10 * MS, 20 * MS], [20 * MS], []]
    lab.run(30 * MS)
    assert len(lab.idle()) == 2


def test_a_program_whose_entries_do_not_age_has_no_code_for_it() -> None:
    program = compile_program(PASSING.json.read_text())
    assert "PS_WORD" not in program.source
    assert not program.resources.ages
