"""Arrays that pass between real executors, through shared memory and over TCP."""

import gc
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runtime as rt
from runtime.server.settings import NETWORKS
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow

ROWS, COLUMNS = 512, 1024
add_one = rt.function(library="numpy", outputs=lambda x: x)(lambda x: x + 1)
as_it_is = rt.function(library="numpy", outputs=lambda x: x)(lambda x: x)


@rt.function(library="numpy", outputs=lambda x, _: x)
def add_when_there_is(x: Any, path: Any) -> Any:
    """Wait for a file, whose name is an array of bytes, and then read the input again."""
    import time
    from pathlib import Path

    name, before = bytes(path).decode(), x.copy()
    Path(f"{name}-waiting").touch()
    while not Path(name).exists():
        time.sleep(0.001)
    return x + before


@rt.function(library="numpy", outputs=lambda x: x)
def change(x: Any) -> Any:
    x[0] = 7
    return x


@rt.function(library="numpy", outputs=lambda x: rt.ArraySpec(x.shape, "float64", is_ragged=True))
def positive(x: Any) -> Any:
    return x[x[:, 0] > 0]


@pytest.fixture(scope="module", params=NETWORKS)
def runtime(request: pytest.FixtureRequest) -> Iterator[rt.LocalRuntime]:
    with rt.local(islands=2, hosts=2, devices=2, network=request.param) as started:
        yield started


def placed(runtime: rt.Runtime, function: Any, size: int, island: int, **axes: Any) -> Any:
    slice_ = runtime.make_virtual_device_set().add_slice(size, island=f"island-{island}")
    return rt.pmap(function, devices=slice_, **axes)


def until(holds: Callable[[], bool]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end_s
        time.sleep(0.01)


def usages(runtime: rt.Runtime) -> list[tuple[int, int]]:
    hosts = sorted(runtime.status()["hosts"], key=lambda host: host["host"])
    return [(host["shared_bytes"], host["lent"]) for host in hosts]


def is_returned(runtime: rt.Runtime) -> bool:
    gc.collect()
    return all(usage == (0, 0) for usage in usages(runtime))


def matrix() -> np.ndarray[Any, Any]:
    return np.arange(float(ROWS * COLUMNS)).reshape(ROWS, COLUMNS)


@pytest.mark.parametrize("to", [{}, {"in_axes": 1, "out_axes": 1}, {"in_axes": None, "out_axes": None}])
@pytest.mark.parametrize("sizes", [(1, 4), (4, 1), (4, 2), (2, 4)])
def test_large_arrays_pass_however_they_are_cut(
    runtime: rt.LocalRuntime, sizes: tuple[int, int], to: dict[str, Any]
) -> None:
    one, two = placed(runtime, add_one, sizes[0], 0), placed(runtime, add_one, sizes[1], 1, **to)
    back = placed(runtime, add_one, sizes[0], 0, **to)

    @rt.program
    def there_and_back(x: Any) -> Any:
        return back(two(one(x)))

    x = matrix()
    for _ in range(3):
        assert (there_and_back(x).numpy(PATIENCE_S) == x + 3).all()
    until(lambda: is_returned(runtime))


def test_functions_of_pytorch_take_and_make_large_arrays(runtime: rt.LocalRuntime) -> None:
    one, two = placed(runtime, lambda x: x * 2, 2, 0), placed(runtime, lambda x: x + 1, 1, 1)
    x = matrix()
    assert (two(one(x)).numpy(PATIENCE_S) == x * 2 + 1).all()
    until(lambda: is_returned(runtime))


def test_large_ragged_arrays_are_gathered(runtime: rt.LocalRuntime) -> None:
    x = matrix() - ROWS * COLUMNS / 2
    kept = placed(runtime, positive, 4, 0)(x)
    gathered = placed(runtime, as_it_is, 1, 1, in_axes=None, out_axes=None)(kept)
    assert (gathered.numpy(PATIENCE_S) == x[x[:, 0] > 0]).all()
    del kept, gathered
    until(lambda: is_returned(runtime))


def test_what_a_client_holds_may_lie_in_the_memory_of_another_host(runtime: rt.LocalRuntime) -> None:
    one, two = placed(runtime, add_one, 1, 0), placed(runtime, as_it_is, 1, 1)
    x = matrix()
    held = two(one(x)).wait(PATIENCE_S)
    again = two(one(x + 1)).wait(PATIENCE_S)
    assert (held.numpy(PATIENCE_S) == x + 1).all()
    assert (again.numpy(PATIENCE_S) == x + 2).all()
    del held, again
    until(lambda: is_returned(runtime))


def test_where_memory_is_scarce_arrays_pass_all_the_same() -> None:
    """The arena has room for one array and a half; all of them pass at once."""
    with rt.local(islands=2, hosts=1, devices=4, device_memory_bytes=12 << 18) as runtime:
        one, two = placed(runtime, add_one, 4, 0), placed(runtime, add_one, 4, 1)
        x = np.arange(float(4 << 15))
        passed = [two(one(x + number)) for number in range(20)]
        for number, each in enumerate(passed):
            assert (each.numpy(PATIENCE_S) == x + number + 2).all()
        del passed, each
        until(lambda: is_returned(runtime))


def num_mapped(pid: int) -> int:
    """How many arenas a process has mapped."""
    return Path(f"/proc/{pid}/maps").read_text().count("memfd:trainyard")


@pytest.mark.parametrize("killed", [0, 1], ids=["lender", "reader"])
def test_a_killed_executor_leaves_no_memory_behind(killed: int, tmp_path: Path) -> None:
    with rt.local(islands=2, hosts=1, devices=1) as runtime:
        hosts = {host["host"]: host["pid"] for host in runtime.status()["hosts"]}
        x, path = matrix(), np.frombuffer(str(tmp_path / "go").encode(), np.uint8)
        held = placed(runtime, add_one, 1, 0)(x).wait(PATIENCE_S)
        waiting = placed(runtime, add_when_there_is, 1, 1, in_axes=(0, None))(held, path)
        until((tmp_path / "go-waiting").exists)
        assert usages(runtime)[0] == (x.nbytes, 1)
        assert [num_mapped(hosts[number]) for number in (0, 1)] == [1, 2]
        os.kill(hosts[killed], signal.SIGKILL)
        with pytest.raises(rt.LostError, match=f"host {killed} of island island-{killed} ended"):
            waiting.wait(PATIENCE_S)
        (tmp_path / "go").touch()  # a reader that lives reads on in memory of the dead
        del held, waiting
        until(lambda: is_returned(runtime))
        survivor = placed(runtime, add_one, 1, 1 - killed)
        assert (survivor(x).numpy(PATIENCE_S) == x + 1).all()
        until(lambda: num_mapped(hosts[1 - killed]) == 1)
        until(lambda: is_returned(runtime))
        assert all(sum(host["device_bytes"]) + host["spilled_bytes"] == 0 for host in runtime.status()["hosts"])


def test_a_function_cannot_change_what_it_reads_of_another_host() -> None:
    with rt.local(islands=2, hosts=1, devices=1) as runtime:
        held = placed(runtime, add_one, 1, 0)(matrix())
        with pytest.raises(rt.ComputationError, match="change raised ValueError: assignment destination is read-only"):
            placed(runtime, change, 1, 1)(held).wait(PATIENCE_S)
        assert (held.numpy(PATIENCE_S) == matrix() + 1).all()


def test_a_network_that_does_not_exist_is_refused_by_name() -> None:
    with pytest.raises(
        ValueError, match="network: expected one of shared-memory, tcp, machines, got 'carrier pigeons'"
    ):
        rt.local(network="carrier pigeons")
