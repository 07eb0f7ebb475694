"""What a job that plays a trace asks of its hosts, and of the trace."""

from collections.abc import Iterator

from policies.task_graph import MAX_TASKS
from topologies.problems import Problem
from workloads.chakra.expansion import stays_inside_a_host, trace_of
from workloads.chakra.wire import ChakraError
from workloads.chakra_workload import ChakraWorkload


def chakra_problems(workload: ChakraWorkload, num_hosts: int, gpus_per_host: int) -> Iterator[Problem]:
    """Yield each problem of a job on hosts with so many GPUs, by the key of the workload."""
    try:
        trace = trace_of(workload)
    except ChakraError as error:
        yield Problem(("trace",), str(error))
        return
    if trace.num_ranks != num_hosts * gpus_per_host:
        ranks = f"expected as many GPUs as the trace has ranks, {trace.num_ranks}"
        yield Problem(("trace",), f"{ranks}, got {num_hosts} hosts with {gpus_per_host}")
    elif workload.nvlink_gbps is None and stays_inside_a_host(trace, gpus_per_host):
        yield Problem(("nvlink_gbps",), "missing; ranks of one host communicate with each other")
    if len(trace.tasks) >= MAX_TASKS:
        remedy = "" if workload.in_order else " or leave in_order true"
        problem = f"expected fewer than {MAX_TASKS:,} tasks, the trace has {len(trace.tasks):,}; merge more{remedy}"
        yield Problem(("merge_s",), problem)
