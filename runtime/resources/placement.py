"""Static balance: slices go to the devices that stand for the fewest virtual ones (Pathways, section 4.1)."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import permutations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from runtime.resources.errors import DoesNotFitError
from runtime.resources.islands import Device, Inventory, Island
from runtime.resources.slices import SliceRequest


def place(
    request: SliceRequest,
    inventory: Inventory,
    taken: Collection[int],
    avoided: Collection[str] = (),
    kept: Sequence[int] = (),
    path_load: Callable[[str], float] = lambda _: 0.0,
) -> tuple[str, tuple[int, ...]]:
    """Return the island and the devices for a slice.

    The slice goes to the island where its most loaded device is loaded least; among equals where its devices have the
    least load together, then where the island has the least per device, then where its paths are loaded least. Without
    a shape it gets the least loaded devices, on few hosts. With a shape it gets the place in the mesh that is loaded
    least, turned if that helps.

    Args:
        request: What is asked for.
        inventory: What is there.
        taken: Devices that other slices of the same set have.
        avoided: Hosts that it must not use.
        kept: Devices that a slice keeps, unless it is to be placed as a whole; they decide the island.
        path_load: By island, how loaded the network is between it and those to which the slice will send.

    Raises:
        DoesNotFitError: No island can hold it; the message says what each one has.
    """
    islands: Iterable[Island] = inventory.islands.values()
    if kept:
        islands = [inventory.islands[inventory.devices[kept[0]].island]]
    elif request.island is not None:
        islands = [island for island in islands if island.name == request.island]
    best: tuple[tuple[int, int, float, float], str, tuple[int, ...]] | None = None
    refusals: list[str] = []
    for island in islands:
        usable: list[Device] = []
        objections: Counter[str] = Counter()
        for device in island.devices.values():
            if device.number in kept:
                continue
            objection = _objection(request, device, inventory, taken, avoided)
            if objection is None:
                usable.append(device)
            else:
                objections[objection] += 1
        chosen = _chosen(request, request.num_devices - len(kept), island, usable, inventory)
        if chosen is None:
            refusals.append(_refusal(request, island, len(usable) + len(kept), objections))
            continue
        loads = [inventory.loads[number] for number in chosen]
        per_device = sum(inventory.loads[number] for number in island.devices) / len(island.devices)
        score = (max(loads, default=0), sum(loads), per_device, path_load(island.name))
        if best is None or score < best[0]:
            best = score, island.name, chosen
    if best is None:
        raise DoesNotFitError(f"{request}: fits nowhere: {'; '.join(refusals) or 'its island is not there'}")
    return best[1], best[2]


def _objection(
    request: SliceRequest, device: Device, inventory: Inventory, taken: Collection[int], avoided: Collection[str]
) -> str | None:
    """Say why a device may not be used; None where it may."""
    if device.host in inventory.leaving:
        return "of hosts that leave"
    if device.number in taken:
        return "of other slices of its set"
    if device.host in avoided:
        return "of hosts of slices that it is to be apart from"
    return request.constraints.objection(device, inventory.reserved_bytes[device.number])


def _refusal(request: SliceRequest, island: Island, num_usable: int, objections: Mapping[str, int]) -> str:
    if request.is_mesh and island.mesh is None:
        return f"island {island.name!r} has no mesh"
    mesh = f" of its mesh {'x'.join(map(str, island.mesh))}" if request.is_mesh and island.mesh else ""
    why = ", ".join(f"{number} are {objection}" for objection, number in objections.items())
    together = [
        text
        for holds, text in (
            (request.constraints.same_host, "on one host"),
            (request.constraints.contiguous, "that are contiguous"),
        )
        if holds and num_usable >= request.num_devices
    ]
    usable = f"in island {island.name!r}{mesh} {num_usable} of {len(island.devices)} devices are usable"
    return usable + (f" ({why})" if why else "") + (f", not so many {' and '.join(together)}" if together else "")


def _chosen(
    request: SliceRequest, num_devices: int, island: Island, usable: Sequence[Device], inventory: Inventory
) -> tuple[int, ...] | None:
    """Return the least loaded devices for a slice, as it asks for them; None where there are none."""
    groups = [usable]
    if request.constraints.same_host:
        groups = [
            [each for each in usable if each.host == host] for host in dict.fromkeys(each.host for each in usable)
        ]
    found: list[tuple[int, ...]] = []
    for group in groups:
        if num_devices > len(group):
            continue
        if request.is_mesh or (request.constraints.contiguous and island.mesh is not None):
            shapes = [request.shape] if request.is_mesh else _blocks(num_devices, len(island.mesh or ()))
            chosen = [_mesh(shape, island, group, inventory) for shape in shapes]
        elif request.constraints.contiguous:
            chosen = [_run(num_devices, island, group, inventory)]
        else:
            chosen = [_least_loaded(num_devices, group, inventory)]
        found += [each for each in chosen if each is not None]
    if len(found) < 2:
        return found[0] if found else None

    def burden(numbers: tuple[int, ...]) -> tuple[int, int]:
        loads = [inventory.loads[number] for number in numbers]
        return max(loads), sum(loads)

    return min(found, key=burden)


def _blocks(num_devices: int, sides: int) -> list[tuple[int, ...]]:
    """Return the shapes of so many devices with so many sides, each side no longer than the next."""

    def shapes(count: int, sides: int, least: int) -> Iterator[tuple[int, ...]]:
        if sides == 1:
            yield (count,)
            return
        for side in range(least, count + 1):
            if side**sides > count:
                return
            if count % side == 0:
                yield from ((side, *rest) for rest in shapes(count // side, sides - 1, side))

    return list(shapes(num_devices, sides, 1))


def _run(num_devices: int, island: Island, usable: Sequence[Device], inventory: Inventory) -> tuple[int, ...] | None:
    """Return the least loaded devices that follow each other in an island without a mesh."""
    allowed = {device.number for device in usable}
    order = list(island.devices)
    best: tuple[tuple[int, int], tuple[int, ...]] | None = None
    for first in range(len(order) - num_devices + 1):
        numbers = tuple(order[first : first + num_devices])
        if allowed.issuperset(numbers):
            loads = [inventory.loads[number] for number in numbers]
            score = max(loads), sum(loads)
            if best is None or score < best[0]:
                best = score, numbers
    return None if best is None else best[1]


def _least_loaded(num_devices: int, usable: Sequence[Device], inventory: Inventory) -> tuple[int, ...] | None:
    """Return the least loaded devices, by number; among equally loaded ones those of few hosts."""
    if len(usable) < num_devices:
        return None
    by_load: defaultdict[int, list[Device]] = defaultdict(list)
    for device in usable:
        by_load[inventory.loads[device.number]].append(device)
    chosen: list[int] = []
    for load in sorted(by_load):
        chosen += _on_few_hosts(num_devices - len(chosen), by_load[load])
        if len(chosen) == num_devices:
            break
    return tuple(sorted(chosen))


def _on_few_hosts(num_devices: int, devices: Sequence[Device]) -> list[int]:
    """Return so many devices, or all: from the smallest host that has enough, else from the largest, then on."""
    by_host: defaultdict[str, list[int]] = defaultdict(list)
    for device in devices:
        by_host[device.host].append(device.number)
    hosts = sorted(by_host.values(), key=lambda numbers: (len(numbers), -numbers[0]))
    chosen: list[int] = []
    while hosts and len(chosen) < num_devices:
        missing = num_devices - len(chosen)
        sufficient = [numbers for numbers in hosts if len(numbers) >= missing]
        if sufficient:
            smallest = min(sufficient, key=lambda numbers: (len(numbers), numbers[0]))
            return chosen + smallest[:missing]
        chosen += hosts.pop()
    return chosen


def _mesh(
    shape: tuple[int, ...], island: Island, usable: Sequence[Device], inventory: Inventory
) -> tuple[int, ...] | None:
    """Return the devices of the least loaded place for a shape, row by row over the shape."""
    if island.mesh is None or len(shape) > len(island.mesh):
        return None
    unusable = 1 + max(inventory.loads.values(), default=0)
    numbers = np.full(island.mesh, -1, dtype=np.int64)
    loads = np.full(island.mesh, unusable, dtype=np.int64)
    for device in usable:
        numbers[device.position] = device.number
        loads[device.position] = inventory.loads[device.number]
    sides = shape + (1,) * (len(island.mesh) - len(shape))
    best: tuple[tuple[int, int], tuple[int, ...]] | None = None
    turned: set[tuple[int, ...]] = set()
    for axes in permutations(range(len(sides))):
        window = tuple(sides[axis] for axis in axes)
        if window in turned or any(side > length for side, length in zip(window, island.mesh, strict=True)):
            continue
        turned.add(window)
        inside = tuple(range(-len(sides), 0))
        windows = sliding_window_view(loads, window)
        most, total = windows.max(axis=inside), windows.sum(axis=inside)
        at = np.unravel_index(np.lexsort((total.ravel(), most.ravel()))[0], most.shape)
        score = int(most[at]), int(total[at])
        if score[0] < unusable and (best is None or score < best[0]):
            found = sliding_window_view(numbers, window)[at].transpose(np.argsort(axes))
            best = score, tuple(found.ravel().tolist())
    return None if best is None else best[1]
