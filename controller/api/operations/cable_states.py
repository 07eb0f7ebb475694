"""The differences between fabric file and world as messages for operators. A pure function."""

from collections.abc import Iterator, Mapping, Set

from controller.api.operations import operations_pb2 as wire
from controller.discovery.differences import Difference


def cable_states(found: Mapping[Difference, float], now_s: float, dead: Set[int]) -> Iterator[wire.CableState]:
    """The differences, each with the time since when, and whether nothing is routed over the cable.

    Nothing is where the file has no cable.
    """
    for difference, since_s in found.items():
        yield wire.CableState(
            place=difference.place,
            problem=difference.kind,
            found=difference.found,
            for_s=now_s - since_s,
            is_unused=difference.link is None or difference.link in dead,
        )
