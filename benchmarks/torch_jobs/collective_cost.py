"""What the observation of a collective costs: its processor time with the recorder less that without, no transfer."""

import json
import statistics
import subprocess
import sys
import time

_CALLS, _ROUNDS = 5000, 5

Figures = dict[str, object]


def collective_figures(runs: int) -> Figures:
    """Measure in so many processes of their own."""
    command = (sys.executable, "-P", __file__)
    found = [
        json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(runs)
    ]
    return {name: statistics.median(each[name] for each in found) for name in found[0]} | {
        "collective_cost_runs": found
    }


def _measure() -> dict[str, float]:
    """Return the seconds that a collective of the fake back end takes more while it is observed."""
    import torch
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore

    from hostlib.torch.recorder import Recorder

    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=4)
    tensor = torch.ones(4)

    def seconds() -> float:
        """Return the processor time of a collective, of this thread and all others: the best of some rounds."""
        best_s = float("inf")
        for _ in range(_ROUNDS):
            began_s = time.process_time()
            for _ in range(_CALLS):
                dist.all_reduce(tensor)
            best_s = min(best_s, (time.process_time() - began_s) / _CALLS)
        return best_s

    seconds()
    plain_s = seconds()
    recorder = Recorder()
    recorder.start_profiling()
    profiling_s = seconds()
    recorder.stop_profiling()
    recorded_s = seconds()
    recorder.close()
    return {
        "attach_s_per_collective": round(recorded_s - plain_s, 8),
        "attach_profiling_s_per_collective": round(profiling_s - plain_s, 8),
        "plain_s_per_collective": round(plain_s, 8),
    }


if __name__ == "__main__":
    print(json.dumps(_measure()))
