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
    time of a ``device``, or that of their bytes at ``memory_bytes_per_s``. ``nvlink_gbps`` is a GPU's rate inside a
    host. ``step_latency_s`` is what each step of a collective between hosts takes besides its bytes.
    """

    type: Literal["chakra"]
    trace: Name
    groups: Name | None = None
    in_order: bool = True
    merge_s: Seconds = 0.0
    device: Device | None = None
    memory_bytes_per_s: PositiveNumber | None = None
    nvlink_gbps: PositiveNumber | None = None
    step_latency_s: Seconds = 0.0
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
        speed = self.device.speed_flops_per_s if self.device else None
        return Reading(self.in_order, self.merge_s, speed, self.memory_bytes_per_s)
