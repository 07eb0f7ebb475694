"""``python -m tests.chaos`` runs many events, world after world, and ends with the seed of the first failure."""

import argparse
import sys
import time

from tests.chaos import log
from tests.chaos.run import ChaosError, Outcome, play

_EVENTS_PER_WORLD = 2_500


def main() -> None:
    """Run ``--events`` events from ``--seed`` on; return 1 where anything is wrong."""
    arguments = argparse.ArgumentParser(description="random events on the emulator, which a seed replays")
    arguments.add_argument("--seed", type=int, default=1, help="of the first world; the next has the next")
    arguments.add_argument("--events", type=int, default=10_000, help="over all worlds")
    log.add_option(arguments)
    given = arguments.parse_args()
    for seed, num_events in _worlds(given.seed, given.events):
        began_s = time.monotonic()
        with log.kept(shown=given.log) as logged:
            try:
                outcome = play(seed, num_events, lambda number: print(f"\r{number} events ", end="", flush=True))
            except ChaosError as error:
                sys.exit("\n".join(["", *logged, str(error)]))
        print(f"\r{_line(seed, num_events, outcome, time.monotonic() - began_s)}", flush=True)


def _worlds(first_seed: int, num_events: int) -> list[tuple[int, int]]:
    """Return the seed and the number of events of each world."""
    sizes = [_EVENTS_PER_WORLD] * (num_events // _EVENTS_PER_WORLD)
    if rest := num_events % _EVENTS_PER_WORLD:
        sizes.append(rest)
    return list(enumerate(sizes, first_seed))


def _line(seed: int, num_events: int, outcome: Outcome, taken_s: float) -> str:
    last = outcome.footprints[-1]
    return (
        f"seed {seed}: {num_events} events in {outcome.virtual_s:.0f} s of virtual time and {taken_s:.0f} s of ours,"
        f" {outcome.num_messages} messages, {outcome.num_arrived} transfers,"
        f" {last.resident_bytes >> 20} MiB, {last.num_files} files, run {outcome.digest[:16]}"
    )


if __name__ == "__main__":
    main()
