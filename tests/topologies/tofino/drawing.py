"""Sets of ports that fit on a Tofino."""

from random import Random

_LAYOUTS = ((100,), (40,), (50, None, 50), (25, 25, 25, 25), (10, 1, 50), (50, None, 25, 10), (7.5,), (33.3, None, 12))
"""What the lanes of a group carry, in Gbit/s; None: another lane of the port before."""


def drawn_ports(random: Random) -> list[tuple[int, float]]:
    """Return up to 64 groups of ports by number and Gbit/s, cabled in any order."""
    groups = [128 * pipe + 4 * group for pipe in range(4) for group in range(16) if pipe or group]
    ports = [
        (first + lane, gbps)
        for first in random.sample(groups, random.randint(1, len(groups)))
        for lane, gbps in enumerate(random.choice(_LAYOUTS))
        if gbps is not None
    ]
    return random.sample(ports, len(ports))
