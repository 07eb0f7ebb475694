"""How reports name links, and which links they leave out as idle."""

from topologies.fabric import Fabric

LEAST_LOAD = 0.01
"""The utilisation below which a link or a level of it counts as idle: acknowledgements alone stay below."""


def link_name(fabric: Fabric, index: int) -> str:
    """Return the ends of a link, and its number where it has parallels."""
    link = fabric.links[index]
    parallel = len(fabric.links_between(link.source, link.destination)) > 1
    suffix = f" #{fabric.parallel_index(index)}" if parallel else ""
    return f"{link.source} \N{RIGHTWARDS ARROW} {link.destination}{suffix}"
