"""Lowered programs by (program, where its arguments lie, epoch): repeated runs are not lowered again."""

from collections.abc import Mapping, Sequence

from runtime.lowering.assign import Layout, Placement
from runtime.lowering.subprograms import LoweredProgram, lower
from runtime.program import Program


class LoweringCache:
    """What the programs of one client were lowered to in the present epoch.

    A new epoch means that virtual devices have moved: everything is lowered again when it next runs.
    """

    def __init__(self) -> None:
        self._epoch = -1
        self._lowered: dict[tuple[object, ...], tuple[tuple[Layout, ...], LoweredProgram]] = {}

    def lowered(
        self,
        number: int,
        program: Program,
        epoch: int,
        slices: Mapping[int, Placement],
        arguments: Sequence[Layout],
    ) -> LoweredProgram:
        """Return program ``number`` lowered for the epoch. Raises ValueError as ``lower``."""
        if epoch != self._epoch:
            self._lowered.clear()
            self._epoch = epoch
        # A slice has one placement in an epoch. It is kept here, so that no other gets its id.
        key = (number, *((each.sharding, id(each.placement)) for each in arguments))
        known = self._lowered.get(key)
        if known is None:
            known = (tuple(arguments), lower(program, slices, arguments))
            self._lowered[key] = known
        return known[1]
