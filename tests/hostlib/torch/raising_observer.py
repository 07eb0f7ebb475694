"""Program of one of two ranks: the host library fails in the middle of the job."""

from typing import Any

import torch
import torch.distributed as dist

import hostlib.torch
from hostlib.torch.recorder import Recorder

_FAILS_AT = 3


def main(_rank: int) -> dict[str, Any]:
    """Return what the job computes, how often the library was told, and what it says in the end."""
    plain = Recorder.issued
    told = []

    def failing(*args: Any) -> Any:
        told.append(args)
        if len(told) == _FAILS_AT:
            raise RuntimeError("a mistake of ours")
        return plain(*args)

    Recorder.issued = failing  # type: ignore[method-assign]
    hostlib.torch.attach()
    sums = []
    for number in range(6):
        tensor = torch.full((3,), float(number))
        dist.all_reduce(tensor)
        sums.append(tensor[0].item())
    while (found := hostlib.torch.stats()).state != hostlib.torch.State.PLAIN or "failed" not in found.note:
        pass
    return {"sums": sums, "told": len(told), "collectives": found.collectives}
