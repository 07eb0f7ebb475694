"""Ray's part of ``benchmarks/runtime_peers.py``, run by an interpreter that has Ray.

It reads a JSON list from each line of stdin, [figure, hosts, count], and answers with a line of JSON: seconds of one
call, node or program. The first line that it writes says that Ray has started.
"""

import json
import sys
import time
from typing import Any

import numpy as np
import ray

_IN_FLIGHT = 8


@ray.remote(num_cpus=0)
class Host:
    """A host with one device."""

    def add_one(self, x: Any) -> Any:
        """Add 1."""
        return x + 1

    def fused(self, x: Any, times: int) -> Any:
        """Add 1 so many times."""
        for _ in range(times):
            x = x + 1
        return x


def chained(hosts: list[Any], count: int) -> float:
    """Return the time of a node: so many calls, each of a shard on every host, by references."""
    started_s = time.perf_counter()
    shards: list[Any] = [np.zeros(1, np.float32)] * len(hosts)
    for _ in range(count):
        shards = [host.add_one.remote(shard) for host, shard in zip(hosts, shards, strict=True)]
    found = ray.get(shards)
    taken_s = time.perf_counter() - started_s
    assert all((each == count).all() for each in found)
    return taken_s / count


def fused(hosts: list[Any], count: int) -> float:
    """Return the time of a call that adds 1 so many times in every shard."""
    calls = 32
    started_s = time.perf_counter()
    shards: list[Any] = [np.zeros(1, np.float32)] * len(hosts)
    for _ in range(calls):
        shards = [host.fused.remote(shard, count) for host, shard in zip(hosts, shards, strict=True)]
    found = ray.get(shards)
    taken_s = time.perf_counter() - started_s
    assert all((each == calls * count).all() for each in found)
    return taken_s / calls


def compiled_graph(hosts: list[Any], count: int) -> float:
    """Return the time of a program with one stage on each host, of which several are under way."""
    from ray.dag import InputNode

    with InputNode() as node:
        for host in hosts:
            node = host.add_one.bind(node)
    graph = node.experimental_compile(_max_inflight_executions=_IN_FLIGHT)
    x = np.zeros(1, np.float32)
    for _ in range(3):
        ray.get(graph.execute(x))
    started_s = time.perf_counter()
    under_way = []
    for _ in range(count):
        if len(under_way) == _IN_FLIGHT:
            assert (ray.get(under_way.pop(0)) == len(hosts)).all()
        under_way.append(graph.execute(x))
    for each in under_way:
        assert (ray.get(each) == len(hosts)).all()
    taken_s = time.perf_counter() - started_s
    graph.teardown()
    return taken_s / count


def main() -> None:
    """Answer until stdin ends."""
    ray.init(address="local", num_cpus=16, include_dashboard=False, _node_ip_address="127.0.0.1", log_to_driver=False)
    print(json.dumps(ray.__version__), flush=True)
    for line in sys.stdin:
        figure, number, count = json.loads(line)
        hosts = [Host.remote() for _ in range(number)]
        ray.get([host.add_one.remote(0) for host in hosts])
        measure = {"chained": chained, "fused": fused, "compiled_graph": compiled_graph}[figure]
        measure(hosts, 4)
        print(json.dumps(measure(hosts, count)), flush=True)
        for host in hosts:
            ray.kill(host)
    ray.shutdown()


if __name__ == "__main__":
    main()
