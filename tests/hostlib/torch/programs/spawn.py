"""A training script as users have it, which spawns its ranks, and looks for PyTorch before it imports it."""

import importlib.resources
import importlib.util
import json
import sys
import time
from pathlib import Path

assert importlib.util.find_spec("torch") is not None

import torch  # noqa: E402 # it was looked for before
import torch.distributed as dist  # noqa: E402 # it was looked for before
import torch.multiprocessing  # noqa: E402 # it was looked for before


def main(rank: int, folder: Path) -> None:
    """Be one of the two ranks."""
    dist.init_process_group("gloo", init_method=f"file://{folder / 'store'}", rank=rank, world_size=2)
    tensor = torch.ones(3)
    for _ in range(4):
        dist.all_reduce(tensor)
    attached = sys.modules["hostlib.torch"]
    found = {"value": tensor[0].item(), "collectives": attached.stats().collectives, "rank": dist.get_rank()}
    dist.destroy_process_group()
    (folder / f"result-{rank}").write_text(json.dumps(found | {"ended_s": time.monotonic()}))


if __name__ == "__main__":
    assert importlib.resources.files("torch").joinpath("version.py").is_file()
    torch.multiprocessing.spawn(main, args=(Path(sys.argv[1]),), nprocs=2)
    assert "hostlib.torch" not in sys.modules  # it has no process group
