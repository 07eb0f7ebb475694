"""``python -m tests.bmv2.recording``: have a live BMv2 answer anew, and rewrite the vectors."""

import sys

from tests.bmv2.emulated import Emulator
from tests.bmv2.live import VARIABLE, find_bmv2, running, version_of
from tests.bmv2.observing import sessions_of_pipeline_tests
from tests.bmv2.sampling import sample
from tests.bmv2.session import record
from tests.bmv2.small_sessions import SMALL_SEEDS, SMALL_SESSIONS
from tests.bmv2.vectors import FOLDER, Vectors, program_sha256, write_vectors

SAMPLED_SEEDS = range(12)
"""Seeds of the random sessions among the vectors."""


def main() -> None:
    """Rewrite every file of vectors."""
    command = find_bmv2()
    if command is None:
        sys.exit(f"simple_switch_grpc is not on PATH, and {VARIABLE} does not name it")
    emulator = Emulator()
    files = {
        "pipeline_tests.json": sessions_of_pipeline_tests(),
        "random.json": [sample(emulator, seed) for seed in SAMPLED_SEEDS],
    }
    with running(command) as bmv2:
        for name, sessions in files.items():
            recordings = tuple(record(bmv2, session) for session in sessions)
            write_vectors(FOLDER / name, Vectors(version_of(command), program_sha256(), recordings))
    for program, session in SMALL_SESSIONS.items():
        with running(command, program.pipeline.message) as bmv2:
            recordings = tuple(record(bmv2, session(seed)) for seed in SMALL_SEEDS)
            vectors = Vectors(version_of(command), program_sha256(program.json), recordings)
            write_vectors(FOLDER / f"{program.name}.json", vectors)


if __name__ == "__main__":
    main()
