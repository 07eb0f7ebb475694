"""Flows that are needed together (EchelonFlow, equation 5)."""

from workloads.closed_forms.arguments import check_count


def coflow(num_flows: int) -> tuple[float, ...]:
    """Of an all-reduce or one of its buckets, a push to or pull from parameter servers, an all-to-all of experts.

    And of any other collective that the next computation waits for as a whole, as each of tensor parallelism. Raises
    ValueError for no flows.
    """
    check_count("num_flows", num_flows)
    return (0.0,) * num_flows
