"""Where NetSense and what registers the job meet in one process, whichever is attached first.

``NetSense.attach`` notes its process group here. ``hostlib.torch`` looks here for what that sends, and directs it.
"""

import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostlib.compression.steps import Steps

_attached: dict[str, "weakref.ref[Steps]"] = {}  # one per process, as there is one torch.distributed


@dataclass(frozen=True, slots=True)
class Compressed:
    """A process group that carries the compressed gradients of one model.

    Attributes:
        name: Of the process group.
        steps: What it does.
    """

    name: str
    steps: "Steps"


def note(name: str, steps: "Steps") -> None:
    """Note that a process group carries these steps. It is forgotten once nobody else has them, as with its model."""
    _attached[name] = weakref.ref(steps)


def compressed() -> Mapping[str, Compressed]:
    """Return the process groups that carry compressed gradients, by name."""
    found = {name: steps() for name, steps in list(_attached.items())}
    for name in [name for name, steps in found.items() if steps is None]:
        _attached.pop(name, None)
    return {name: Compressed(name, steps) for name, steps in found.items() if steps is not None}
