"""How many gangs a second the scheduler of an island grants, for ``benchmarks/runtime.py``."""

from time import process_time

from runtime.scheduling.gangs import GangRequest
from runtime.scheduling.scheduler import IslandScheduler
from runtime.scheduling.shares import ProportionalShare

GANG_DEVICES = 64
CLIENT_WEIGHTS = 8


def grants_per_s(num_gangs: int = 100_000, num_devices: int = 8_000, num_clients: int = 100) -> float:
    """Return the grants a second of processor time of 64-device gangs under proportional shares, everything counted.

    Requests are made, submitted, granted and completed. Clients have weights from 1 to 8, one slice each of those into
    which the devices are cut, and programs of four gangs that take each other's results.

    Raises:
        AssertionError: A gang was granted twice, not at all, or before one that it comes after.
    """
    slices = [range(first, first + GANG_DEVICES) for first in range(0, num_devices, GANG_DEVICES)]
    clients = [f"client{number}" for number in range(num_clients)]
    weights = {client: 1.0 + number % CLIENT_WEIGHTS for number, client in enumerate(clients)}
    scheduler = IslandScheduler(ProportionalShare(weights), look_ahead_s=0.01)
    orders: dict[int, int] = {}
    now_s = 0.0
    number = 0
    started_s = process_time()
    while len(orders) < num_gangs:
        while number < num_gangs and number - len(orders) < 4 * num_clients:
            which = number // 4 % num_clients
            after = (number - 1,) if number % 4 else ()
            devices = slices[which % (len(slices) // 2)]
            scheduler.submit(GangRequest(number, clients[which], devices, 0.004, after=after))
            number += 1
        granted = scheduler.grants(now_s)
        now_s += 0.004
        for grant in granted:
            orders[grant.number] = grant.order
            scheduler.completed(grant.number, now_s)
    elapsed_s = process_time() - started_s
    assert sorted(orders.values()) == list(range(num_gangs))
    assert all(orders[later - 1] < orders[later] for later in range(num_gangs) if later % 4)
    return num_gangs / elapsed_s


if __name__ == "__main__":
    print(f"{grants_per_s():,.0f} grants a second")
