"""The workload ``chakra``: a job that plays execution traces, one for each of its GPUs."""

from pathlib import Path
from typing import Literal

from workloads.chakra.rank_trace import Reading
from workloads.described.devices import Device
from workloads.field_types import FlowsPerPair, Name, PositiveNumber, ScenarioModel, Seconds


class ChakraWorkload(ScenarioModel):
    """Chakra execution traces in the folder ``trace``, one file for each rank; an iteration plays them once.

    Ranks fill the job's hosts in order. ``groups`` is a JSON file with the ranks of communicators, where the traces
    do not describe them. ``in_order`` lets a GPU compute one node at a time, in the order of its file. ``merge_s`` is
    how much longer something may wait so that there are fewer tasks. Nodes with operations and no duration take the
    time of a ``device``. ``nvlink_gbps`` is a GPU's rate inside a host.
    """

    type: Literal["chakra"]
    trace: Name
    groups: Name | None = None
    in_order: bool = True
    merge_s: Seconds = 0.0
    device: Device | None = None
    nvlink_gbps: PositiveNumber | None = None
    flows_per_pair: FlowsPerPair | None = None
    flops: PositiveNumber | None = None

    @property
    def folder(self) -> Path:
        """The folder of the traces."""
        return Path(self.trace)

    @property
    def groups_file(self) -> Path | None:
        """The file of the communicators."""
        return None if self.groups is None else Path(self.groups)

    @property
    def reading(self) -> Reading:
        """How the traces are read."""
        return Reading(self.in_order, self.merge_s, self.device.speed_flops_per_s if self.device else None)
