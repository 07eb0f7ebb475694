"""Fail-overs: leaders are killed, stopped, retired or cut off, while jobs come and go and streams break.

``python -m tests.chaos.fail_over`` runs many of them.
"""

import argparse
import asyncio
import gc
import sys
from collections.abc import Awaitable, Callable
from contextvars import Context
from dataclasses import dataclass
from pathlib import Path
from random import Random

from policies.jit import Kernel
from tests.accepted_writes import AcceptedWrite, accepted_writes, interleaved
from tests.chaos import log
from tests.chaos.fate import Fate
from tests.chaos.leaders import LEADERSHIP_S, NAMES, Leaders
from tests.chaos.run import Run, a_folder, garbage_waits
from tests.chaos.stopping import StoppingLoop
from tests.chaos.world import traffic_of_a_fabric
from topologies.steering import Steering

_PATIENCE_S = 60.0
_FAIL_OVERS_PER_PAUSE = 10
_MAX_EVENTS_BETWEEN = 4
_MAX_BOUNDARIES = 40
_QUIET_S = 0.5
"""What is to happen at one of the next messages happens then at the latest."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run; runs with the same seed have the same digest."""

    digest: str
    num_terms: int
    num_accepted: int
    virtual_s: float


def play(seed: int, num_fail_overs: int) -> Outcome:
    """Run so many fail-overs in a new world. Raises ChaosError where anything is wrong."""
    Kernel.compile_all()
    traffic = traffic_of_a_fabric()
    draws = Random(f"{seed}: loop")

    def loop() -> asyncio.AbstractEventLoop:
        return StoppingLoop(traffic.fabric, draws, traffic.arrive, traffic.nics.arrive)

    async def run(folder: Path) -> Outcome:
        world_draws = Random(f"{seed}: world")
        world = Leaders(traffic, world_draws, "crux", Steering.RULE, folder / "trainyard.db")
        with world.entered(), accepted_writes(world.emulated.switches.values()) as accepted:
            await _FailOvers(world, seed, accepted).happen(num_fail_overs)
            return Outcome(world.network.digest, len(world.terms), len(accepted), asyncio.get_running_loop().time())

    with (
        a_folder() as folder,
        garbage_waits(),
        asyncio.Runner(loop_factory=loop) as runner,
    ):
        return runner.run(run(folder))


class _Fate(Fate):
    """The other events: those of jobs, cables and connections."""

    def __init__(self, world: Leaders, draws: Random) -> None:
        super().__init__(world, draws)
        del self._events[self._controller_is_killed]
        del self._events[self._messages_are_late]
        del self._events[self._switch_fails_or_returns]

    def _any_process(self) -> str:
        return self._draws.choice((*NAMES, super()._any_process()))


class _FailOvers(Run):
    def __init__(self, world: Leaders, seed: int, accepted: list[AcceptedWrite]) -> None:
        super().__init__(world, seed)
        self._leaders = world
        self._accepted = accepted
        self._draws = Random(f"{seed}: fail-overs")
        self._fate = _Fate(world, Random(f"{seed}: fate"))
        self._mishaps: tuple[Callable[[str], Awaitable[None]], ...] = (
            self._killed,
            self._stopped,
            self._without_database,
            self._retired,
        )

    async def happen(self, number: int) -> None:
        """Change the leader so many times."""
        self._leaders.start_controller()
        self._leaders.start_agents()
        await self._until_led(0)
        for count in range(1, number + 1):
            with self._explaining_failures(count):
                for _ in range(self._draws.randrange(_MAX_EVENTS_BETWEEN)):
                    await self._fate.happen()
                await self._fail_over()
                self._fail_if(count, [*self._leaders.network.failures, *interleaved(self._accepted)])
                if count % _FAIL_OVERS_PER_PAUSE == 0 or count == number:
                    self._fail_if(count, await self._judge.spawn(self._judged()))
                    gc.collect()
        self._fail_if(number, self._decided_otherwise())

    async def _fail_over(self) -> None:
        await self._until_led(0)
        term, leader = self._leaders.terms[-1], self._leaders.leader
        assert leader is not None
        mishap = self._draws.choice(self._mishaps)
        self._fate.history.append(f"{self._now_s():10.3f} s  {leader}, which leads in term {term}, {mishap.__name__}")
        if self._draws.random() < 0.5:
            self._break_a_stream()
        await mishap(leader)
        await self._until_led(term)
        if self._draws.random() < 0.5:
            self._break_a_stream()

    async def _until_led(self, term: int) -> None:
        """Wait until a controller leads in a later term."""
        try:
            async with asyncio.timeout(_PATIENCE_S):
                while self._leaders.leader is None or self._leaders.terms[-1] <= term:
                    await asyncio.sleep(0.05)
        except TimeoutError:
            self._fail(term, [f"nobody leads after term {term}", *self._leaders.network.failures])

    # ---- what becomes of a leader -----------------------------------------------------------------------------------

    async def _killed(self, leader: str) -> None:
        self._at_boundary(self._leaders.kill, leader)
        self._later(_QUIET_S + self._draws.uniform(0, 2) * LEADERSHIP_S, self._leaders.start, leader)

    async def _stopped(self, leader: str) -> None:
        self._at_boundary(self._leaders.stop, leader)
        self._later(_QUIET_S + self._draws.uniform(1.2, 4) * LEADERSHIP_S, self._leaders.go_on, leader)

    async def _without_database(self, leader: str) -> None:
        self._leaders.lose_database(leader)
        self._later(self._draws.uniform(1.2, 4) * LEADERSHIP_S, self._leaders.regain_database, leader)

    async def _retired(self, leader: str) -> None:
        await self._leaders.retire(leader)
        self._later(self._draws.uniform(0.05, 2 * LEADERSHIP_S), self._leaders.start, leader)

    def _break_a_stream(self) -> None:
        """Break the connections between the leader and one switch."""
        if (leader := self._leaders.leader) is not None:
            switch = self._draws.choice(self._leaders.fabric.switches)
            self._fate.history.append(f"{self._now_s():10.3f} s  the stream of {leader} to {switch} breaks")
            self._leaders.network.cut_between(leader, switch)

    def _at_boundary(self, action: Callable[[str], None], name: str) -> None:
        """Run an action at one of the next messages, or soon where there are none."""
        actions = [action]

        def act(_: str = "") -> None:
            if actions:
                actions.pop()(name)

        self._leaders.network.at_boundary(self._draws.randrange(_MAX_BOUNDARIES), act)
        self._later(_QUIET_S, act, name)

    def _later(self, delay_s: float, action: Callable[[str], None], name: str) -> None:
        # Not in the name of the process that is concerned.
        asyncio.get_running_loop().call_later(delay_s, action, name, context=Context())

    def _again(self, number: int) -> str:
        return f"python -m tests.chaos.fail_over --seed {self._seed} --fail-overs {number}"

    @staticmethod
    def _now_s() -> float:
        return asyncio.get_running_loop().time()


def main() -> None:
    """Run ``--fail-overs`` from ``--seed`` on; return 1 where anything is wrong."""
    arguments = argparse.ArgumentParser(description="random fail-overs, which a seed replays")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--fail-overs", type=int, default=100)
    log.add_option(arguments)
    given = arguments.parse_args()
    with log.kept(shown=given.log) as logged:
        try:
            outcome = play(given.seed, given.fail_overs)
        except AssertionError as error:
            sys.exit("\n".join([*logged, str(error)]))
    print(
        f"seed {given.seed}: {given.fail_overs} fail-overs, {outcome.num_terms} terms, {outcome.num_accepted} writes,"
        f" {outcome.virtual_s:.0f} s of virtual time, run {outcome.digest[:16]}"
    )


if __name__ == "__main__":
    main()
