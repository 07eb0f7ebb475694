"""Link demand of jobs: the bytes of an iteration, separated by whether their paths have a choice of links."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from scipy.sparse import coo_array, csr_array

from topologies.fabric import Nic, Path
from topologies.routing import Routing
from workloads.jobs import TrainingJob
from workloads.task_graph import FlowSpec


@dataclass(frozen=True, slots=True)
class Demand:
    """Bits that one iteration of each job (by number) sends.

    ``fixed_bits``, by link and job, cross the link on every candidate path; these are mostly NIC links.
    ``commodity_bits``, by commodity and job, have a choice. A commodity is a set of alternative paths, less the fixed
    links; all flows with the same alternatives belong to one commodity, which keeps linear programs small.
    """

    fixed_bits: Mapping[tuple[int, int], float]
    commodity_bits: Mapping[tuple[Path, ...], Mapping[int, float]]

    @classmethod
    def of(cls, jobs: Sequence[TrainingJob], routing: Routing) -> "Demand":
        """Return the demand of jobs, numbered in their order."""
        return cls.of_flows(
            [[flow for group in job.graph.flow_groups for flow in group.flows] for job in jobs], routing
        )

    @classmethod
    def of_flows(cls, flows_of: Sequence[Iterable[FlowSpec]], routing: Routing) -> "Demand":
        """Return the demand of sets of flows, numbered in their order, as that of so many jobs."""
        fabric = routing.fabric
        fixed_bits: defaultdict[tuple[int, int], float] = defaultdict(float)
        choices: defaultdict[tuple[str, str], defaultdict[int, float]] = defaultdict(lambda: defaultdict(float))
        between: dict[tuple[str, str], _Between] = {}
        for number, flows in enumerate(flows_of):
            for flow in flows:
                source = fabric.nics[flow.source_host][flow.source_nic]
                destination = fabric.nics[flow.destination_host][flow.destination_nic]
                switches = fabric.links[source.link].destination, fabric.links[destination.link].destination
                if switches not in between:
                    between[switches] = _Between.of(source, destination, routing)
                at_ends = (
                    source.link,
                    fabric.reverse(destination.link),
                    *fabric.host_links_between(source, destination),
                )
                for link in (*at_ends, *between[switches].fixed):
                    fixed_bits[link, number] += flow.size_bytes * 8
                if between[switches].paths:
                    choices[switches][number] += flow.size_bytes * 8
        return cls(fixed_bits, {between[switches].paths: bits_of for switches, bits_of in choices.items()})


@dataclass(frozen=True, slots=True)
class _Between:
    """Links between two switches that all paths cross, and the alternative paths for the rest, if any."""

    fixed: frozenset[int]
    paths: tuple[Path, ...]

    @classmethod
    def of(cls, source: Nic, destination: Nic, routing: Routing) -> "_Between":
        """Compare the candidate paths between the switches of two NICs."""
        paths = [path[1:-1] for path in routing.candidate_paths(source, destination)]
        fixed = frozenset(paths[0]).intersection(*paths[1:])
        if len(paths) == 1:
            return cls(fixed, ())
        return cls(fixed, tuple(tuple(link for link in path if link not in fixed) for path in paths))


def sparse_matrix(entries: Sequence[tuple[int, int, float]], rows: int, columns: int) -> csr_array:
    """Build a sparse matrix from entries of row, column and value; entries at one position are added."""
    row, column, value = zip(*entries, strict=True) if entries else ((), (), ())
    return csr_array(coo_array((value, (row, column)), shape=(rows, columns), dtype=float))
