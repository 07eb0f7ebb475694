"""What ``tests/runtime/test_ray_cluster.py`` does on a real Ray cluster of two nodes, in a process of its own.

It reads the name of a scenario from each line of stdin, and answers with a line of JSON: null, or the traceback of what
went wrong. The first line that it writes says that Ray has started.
"""

import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ray
from ray._private.state import actors
from ray.cluster_utils import Cluster
from ray.experimental.internal_kv import _internal_kv_list

import runtime as rt
from experiments.scenarios.reserved_address import ReservedAddress
from runtime.executor.groups import BrokenGroupError, GroupKey, ShardGroup
from runtime.substrates.local import LocalSubstrate
from runtime.substrates.ray_host import RayHost, ray_store

PATIENCE_S = 120.0
ITEMS = 1 << 20


@rt.function(library="numpy", outputs=lambda x: x)
def add_one(x: Any) -> Any:
    return x + 1


@rt.function(library="numpy", outputs=lambda x: x)
def keep(x: Any) -> Any:
    return x


@rt.function(collective=True)
def mean(x: Any) -> Any:
    return rt.all_reduce(x) / rt.num_shards()


@rt.function(library="numpy", outputs=lambda x: x)
def slow(x: Any) -> Any:
    import time

    time.sleep(60)
    return x


def until(holds: Callable[[], bool]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end_s
        time.sleep(0.05)


def hosts(runtime: rt.Runtime) -> dict[int, dict[str, Any]]:
    return {each["host"]: each for each in runtime.status()["hosts"]}


def alive() -> list[Any]:
    """Return the actors that are hosts."""
    return [each for each in actors().values() if each["ActorClassName"] == "RayHost" and each["State"] != "DEAD"]


def nothing_is_left(pids: list[int]) -> None:
    """Wait until no process, actor, placement group, named socket or key of a runtime is left."""

    def is_gone(pid: int) -> bool:
        return not Path(f"/proc/{pid}").exists()

    until(lambda: all(map(is_gone, pids)))
    until(lambda: not alive())
    until(lambda: all(each["state"] == "REMOVED" for each in ray.util.placement_group_table().values()))
    until(lambda: "@trainyard-" not in Path("/proc/net/unix").read_text())
    until(lambda: not _internal_kv_list(b"@trainyard-", namespace=b"trainyard"))


def placed(runtime: rt.Runtime, function: Any, devices: int, island: str | None = None) -> Any:
    return rt.pmap(function, devices=runtime.make_virtual_device_set().add_slice(devices, island=island))


def programs(_: Cluster) -> None:
    """The same programs, on two islands; hosts share memory where they share a machine."""
    with rt.on_ray(islands=2, hosts=2, devices=1) as runtime:
        one, two = (placed(runtime, add_one, 2, f"island-{number}") for number in range(2))

        @rt.program
        def f(x: Any) -> Any:
            y = two(one(x))
            return y, one(y)

        given = np.arange(2.0 * ITEMS)
        y, z = f(given)
        assert (y.numpy(PATIENCE_S) == given + 2).all()
        assert (z.numpy(PATIENCE_S) == given + 3).all()
        kept = placed(runtime, keep, 2, "island-1")(one(given)).wait(PATIENCE_S)
        assert sum(each["lent"] for each in hosts(runtime).values()) == 2
        assert (kept.numpy(PATIENCE_S) == given + 1).all()
        check_collectives(runtime)
        pids = [each["pid"] for each in hosts(runtime).values()]
    nothing_is_left(pids)


def machines(_: Cluster) -> None:
    """Hosts of different machines send, and their shards meet in Ray's key-value store."""
    hook = {"worker_process_setup_hook": "tests.runtime.ray_hooks.be_machines_of_their_own"}
    with rt.on_ray(islands=1, hosts=2, devices=1, runtime_env=hook) as runtime:
        one, other = (placed(runtime, function, 1) for function in (add_one, keep))
        given = np.arange(2.0 * ITEMS)
        kept = other(one(given))
        assert (kept.numpy(PATIENCE_S) == given + 1).all()
        assert sum(each["lent"] for each in hosts(runtime).values()) == 0
        check_collectives(runtime)
        pids = [each["pid"] for each in hosts(runtime).values()]
    nothing_is_left(pids)


def check_collectives(runtime: rt.Runtime) -> None:
    """Reduce what hosts of one machine swap over named sockets, and what Gloo reduces."""
    reduce = placed(runtime, mean, 2)
    for size in (2, 1 << 14):
        found = reduce(np.repeat([1.0, 3.0], size).astype(np.float32))
        assert (found.numpy(PATIENCE_S) == 2).all()


def groups(_: Cluster) -> None:
    """Shards on different machines meet in Ray's key-value store, and hear there why one of them fails."""
    torch = pytest.importorskip("torch")
    folder = Path(f"@trainyard-{secrets.token_hex(4)}")

    def shards(client: int) -> list[ShardGroup]:
        key = GroupKey(client, 0, ((0, 0), (1, 0)))
        return [ShardGroup(folder, ray_store, "127.0.0.1", key, index, is_local=False) for index in range(2)]

    with ThreadPoolExecutor(2) as threads:
        sums = threads.map(lambda shard: shard.all_reduce(torch.full((4,), shard.index + 1.0), "sum"), shards(0))
        assert [each.tolist() for each in sums] == [[3.0] * 4] * 2
        one, other = shards(1)
        waits = threads.submit(one.all_reduce, torch.ones(4), "sum")
        other.break_("it has no batch")
        with pytest.raises(BrokenGroupError, match="another shard of the call failed: it has no batch"):
            waits.result(PATIENCE_S)
    assert _internal_kv_list(str(folder).encode(), namespace=b"trainyard")
    RayHost.forget(str(folder))
    nothing_is_left([])


def objects(_: Cluster) -> None:
    """Objects of Ray go in and out."""

    @ray.remote(num_cpus=0)
    def made(size: int) -> Any:
        return np.arange(float(size))

    with rt.on_ray(hosts=1, devices=1) as runtime:
        add = placed(runtime, add_one, 1)
        result = add(made.remote(3))
        reference = result.object_ref(PATIENCE_S)
        assert ray.get(reference).tolist() == [1, 2, 3]
        assert add(reference).numpy(PATIENCE_S).tolist() == [2, 3, 4]


def example(cluster: Cluster) -> None:
    """The example of the page prints what the page says."""
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "RAY_ADDRESS": cluster.address}
    command = [sys.executable, str(root / "docs" / "examples" / "on_ray.py")]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert ended.returncode == 0, ended.stderr
    assert f"prints\n\n```text\n{ended.stdout}```" in (root / "docs" / "runtime.md").read_text(encoding="utf-8")


def served(cluster: Cluster) -> None:
    """A server that lasts is started by a command."""
    with tempfile.TemporaryDirectory() as folder, closing(ReservedAddress("127.0.0.1:0")) as reserved:
        address, clients = reserved.address, Path(folder) / "clients.txt"
        clients.write_text("default 1 token operator\n")
        command = [
            sys.executable,
            "-m",
            "trainyard",
            "runtime",
            "serve",
            "--ray",
            cluster.address,
            "--address",
            address,
        ]
        with subprocess.Popen([*command, "--clients", str(clients)], stderr=subprocess.PIPE, text=True) as server:
            assert server.stderr is not None
            assert any(line == f"serving 1 hosts at {address}\n" for line in server.stderr)
            with rt.connect(address, "token") as runtime:
                assert placed(runtime, add_one, 2)(np.zeros(2)).numpy(PATIENCE_S).tolist() == [1, 1]
                pids = [each["pid"] for each in hosts(runtime).values()]
            server.send_signal(signal.SIGTERM)
            assert server.wait(PATIENCE_S) == 0
    nothing_is_left(pids)


def refused(_: Cluster) -> None:
    """What the cluster has no room for is refused by name, as are clusters that do not answer; nothing is left."""
    too_many = r"the cluster has no room for island-0 \(PACK: 100 CPU, 100 CPU\); free are 4 CPU"
    with pytest.raises(OSError, match=too_many):
        rt.on_ray(islands=1, hosts=2, devices=100, patience_s=1.0)
    for address, why in (("127.0.0.1:1", "no Ray cluster answers: "), (None, "host 0: ")):
        broken = None if address else {"conda": "no such environment"}
        with pytest.raises(OSError, match=why):
            rt.on_ray(address, runtime_env=broken)
    nothing_is_left([])


def membership(_: Cluster) -> None:
    """Hosts join and leave."""
    with rt.on_ray(hosts=1, devices=1) as runtime:
        add = placed(runtime, add_one, 1)
        held = add(np.zeros(1)).wait(PATIENCE_S)
        joined = runtime.add_host("island-0", devices=1)
        assert runtime.remove_host(0) == 1
        assert hosts(runtime).keys() == {joined}
        assert add(held).numpy(PATIENCE_S).tolist() == [2]
        groups = ray.util.placement_group_table().values()
        until(lambda: len(alive()) == 1)
        assert runtime.add_host("island-0", devices=1) > joined  # in the place that has become free
        assert len(ray.util.placement_group_table()) == len(groups)
        pids = [each["pid"] for each in hosts(runtime).values()]
    nothing_is_left(pids)


def by_hand(_: Cluster) -> None:
    """A host that is started on this side does not join: it could not be reached."""
    refused = pytest.raises(rt.RefusedError, match="hosts of a Ray cluster are started there")
    with rt.on_ray(hosts=1, devices=1) as runtime, refused:
        runtime.add_host("island-0", devices=1, substrate=LocalSubstrate())


def gpus(cluster: Cluster) -> None:
    """Hosts take what Ray counts by names of its own."""
    node = cluster.add_node(num_cpus=2, num_gpus=1, node_ip_address="127.0.0.1")
    try:
        with rt.on_ray(hosts=1, devices=1, resources={"GPU": 1, "memory": 1 << 20}) as runtime:
            assert placed(runtime, add_one, 1)(np.zeros(1)).numpy(PATIENCE_S).tolist() == [1]
            assert ray.available_resources().get("GPU", 0) == 0
    finally:
        cluster.remove_node(node)


def killed_actor(_: Cluster) -> None:
    """A host that is killed fails what was there, and nothing else; another one takes its place."""
    with rt.on_ray(islands=2, hosts=1, devices=1) as runtime:
        one, two = (placed(runtime, add_one, 1, f"island-{number}") for number in range(2))
        lost, kept = one(np.zeros(1)).wait(PATIENCE_S), two(np.zeros(1)).wait(PATIENCE_S)
        before = hosts(runtime)
        (host,) = (number for number, each in before.items() if each["island"] == "island-0")
        os.kill(before[host]["pid"], signal.SIGKILL)
        with pytest.raises(rt.LostError, match=f"^host {host} of island island-0 ended"):
            one(lost).numpy(PATIENCE_S)
        assert two(kept).numpy(PATIENCE_S).tolist() == [2]
        until(lambda: len(hosts(runtime)) == 2)
        assert host not in hosts(runtime)
        assert one(np.zeros(1)).numpy(PATIENCE_S).tolist() == [1]
        pids = [each["pid"] for each in hosts(runtime).values()]
    nothing_is_left(pids)


def dead_node(cluster: Cluster) -> None:
    """A node that dies is contained, said and recovered: its hosts go on where there is room."""
    node = cluster.add_node(num_cpus=2, resources={"there": 2}, node_ip_address="127.0.0.1")
    with rt.on_ray(hosts=2, devices=1, strategy="STRICT_SPREAD", resources={"there": 1}) as runtime:
        both = placed(runtime, add_one, 2)
        lost = both(np.zeros(2)).wait(PATIENCE_S)
        before = hosts(runtime)
        cluster.remove_node(node, allow_graceful=False)
        until(lambda: len(hosts(runtime)) == 1)
        (gone,) = before.keys() - hosts(runtime).keys()
        with pytest.raises(rt.LostError, match=f"^host {gone} of island island-0 ended"):
            lost.numpy(PATIENCE_S)
        alone = placed(runtime, add_one, 1)
        assert alone(np.zeros(1)).numpy(PATIENCE_S).tolist() == [1]
        again = cluster.add_node(num_cpus=2, resources={"there": 2}, node_ip_address="127.0.0.1")
        until(lambda: len(hosts(runtime)) == 2)
        assert both(np.zeros(2)).numpy(PATIENCE_S).tolist() == [1, 1]
        pids = [each["pid"] for each in hosts(runtime).values()]
    nothing_is_left(pids)
    cluster.remove_node(again)


def silent_node(cluster: Cluster) -> None:
    """A node that only falls silent is known by Ray: no connection has ended."""
    node = cluster.add_node(num_cpus=2, resources={"there": 2}, node_ip_address="127.0.0.1")
    with rt.on_ray(hosts=2, devices=1, strategy="STRICT_SPREAD", resources={"there": 1}) as runtime:
        lost = placed(runtime, add_one, 2)(np.zeros(2)).wait(PATIENCE_S)
        (host,) = (each["Address"] for each in alive() if each["Address"]["NodeID"] == node.node_id)
        pid = next(each["Pid"] for each in alive() if each["Address"] == host)
        raylet = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        for each in (raylet, pid):
            os.kill(each, signal.SIGSTOP)
        with pytest.raises(rt.LostError, match=r"of island island-0 ended: .*died"):
            lost.numpy(PATIENCE_S)
        for each in (raylet, pid):
            os.kill(each, signal.SIGKILL)
        cluster.remove_node(node, allow_graceful=False)
        again = cluster.add_node(num_cpus=2, resources={"there": 2}, node_ip_address="127.0.0.1")
        until(lambda: len(hosts(runtime)) == 2)
        pids = [each["pid"] for each in hosts(runtime).values()]
    nothing_is_left(pids)
    cluster.remove_node(again)


def killed_server(_: Cluster) -> None:
    """Where the server dies, Ray ends what it has started."""
    runtime = rt.on_ray(hosts=2, devices=1)
    result = placed(runtime, slow, 2)(np.zeros(2))
    pids = [each["pid"] for each in hosts(runtime).values()]
    runtime._server.kill()
    with pytest.raises(rt.DisconnectedError):
        result.numpy(PATIENCE_S)
    runtime.close()
    nothing_is_left(pids)


SCENARIOS = (
    programs,
    machines,
    groups,
    objects,
    example,
    served,
    refused,
    membership,
    by_hand,
    gpus,
    killed_actor,
    dead_node,
    silent_node,
    killed_server,
)


def main() -> None:
    """Answer until stdin ends."""
    tell, sys.stdout = sys.stdout, sys.stderr  # where Ray prints what it likes
    head = {"num_cpus": 4, "resources": {"there": 1}, "node_ip_address": "127.0.0.1", "include_dashboard": False}
    quick = {"initial_delay_ms": 500, "timeout_ms": 2000, "period_ms": 500, "failure_threshold": 2}
    head["_system_config"] = {f"health_check_{name}": value for name, value in quick.items()}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        ray.init(address=cluster.address, _node_ip_address="127.0.0.1", log_to_driver=False)
        print(json.dumps(ray.__version__), file=tell, flush=True)
        by_name = {each.__name__: each for each in SCENARIOS}
        for line in sys.stdin:
            try:
                by_name[line.strip()](cluster)
                answer = None
            except BaseException:
                answer = traceback.format_exc()
            print(json.dumps(answer), file=tell, flush=True)
        ray.shutdown()
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main()
