"""The least weighted tardiness of open-loop flow groups, by mixed-integer programming.

Time is divided into slots of ``slot_s``; releases, ideal finish times and ends of sets of flows are whole multiples.
There is a binary variable for each number of slots that a group may be late. A flow may have any rates between its
release and the slot in which its group's tardiness lets it end. On one link of capacity 1, with sizes and times of
whole slots, the optimum is a whole number of slots: given the order of ends, only sums of sizes and times bound
tardiness. On two links, flows that cross both bound sums of two groups' tardiness, and half slots may be needed.
"""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from experiments.papers.open_loop import OpenCase


def least_tardiness_s(case: OpenCase, slot_s: float, limit_s: float = 600.0) -> float:
    """Return the least weighted sum over groups. Raises RuntimeError where HiGHS does not finish within the limit."""
    flows, groups = case.flows, case.group_of.tolist()
    work_s = sum(flow.seconds / min(case.capacities[link] for link in flow.links) for flow in flows)
    last_s = max(flow.release_s for flow in flows) + work_s
    num_slots = round(last_s / slot_s)
    due = [round(ideal_s / slot_s) for ideal_s in case.ideal_finish_s]
    least = [min(due[flow] for flow, of in enumerate(groups) if of == group) for group in range(len(case.groups))]
    # A group's tardiness in slots: from an end of its first due flow at time 0 to an end at the horizon.
    latenesses = [
        (group, late)
        for group in range(len(case.groups))
        for late in range(-max(least[group], 0), num_slots - least[group] + 1)
    ]
    rows: list[int] = []
    columns: list[int] = []
    factors: list[float] = []
    lower: list[float] = []
    upper: list[float] = []

    def constrain(terms: list[tuple[int, float]], at_least: float, at_most: float) -> None:
        rows.extend([len(lower)] * len(terms))
        columns.extend(column for column, _ in terms)
        factors.extend(factor for _, factor in terms)
        lower.append(at_least)
        upper.append(at_most)

    binaries = {pair: column for column, pair in enumerate(latenesses)}
    served: dict[tuple[int, int], int] = {}
    for number, flow in enumerate(flows):
        for slot in range(round(flow.release_s / slot_s), num_slots):
            served[number, slot] = len(binaries) + len(served)
    for group in range(len(case.groups)):
        constrain([(column, 1.0) for (of, _), column in binaries.items() if of == group], 1, 1)
    for number, flow in enumerate(flows):
        own = [(slot, column) for (of, slot), column in served.items() if of == number]
        demand = flow.seconds / slot_s
        constrain([(column, 1.0) for _, column in own], demand, demand)
        fastest = min(case.capacities[link] for link in flow.links)
        for slot, column in own:
            allowing = [
                (binary, -fastest)
                for (of, late), binary in binaries.items()
                if of == groups[number] and due[number] + late > slot
            ]
            constrain([(column, 1.0), *allowing], -np.inf, 0)
    for link, capacity in enumerate(case.capacities):
        for slot in range(num_slots):
            users = [
                (column, 1.0) for (number, at), column in served.items() if at == slot and link in flows[number].links
            ]
            if users:
                constrain(users, -np.inf, capacity)
    num_variables = len(binaries) + len(served)
    costs = np.zeros(num_variables)
    for (group, late), column in binaries.items():
        costs[column] = case.groups[group].weight * late
    is_binary = np.zeros(num_variables)
    is_binary[: len(binaries)] = 1
    matrix = coo_array((factors, (rows, columns)), shape=(len(lower), num_variables)).tocsr()
    upper_bounds = np.where(is_binary, 1.0, np.inf)
    with _silence():
        result = milp(
            costs,
            constraints=LinearConstraint(matrix, lower, upper),
            bounds=Bounds(0, upper_bounds),
            integrality=is_binary,
            options={"time_limit": limit_s, "mip_rel_gap": 0.0},
        )
    if not result.success:
        raise RuntimeError(f"HiGHS: {result.message}")
    return float(result.fun) * slot_s


@contextmanager
def _silence() -> Iterator[None]:
    """Discard standard output: HiGHS sometimes writes a line there that no option turns off."""
    sys.stdout.flush()
    kept = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        ctypes.CDLL(None).fflush(None)
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)
