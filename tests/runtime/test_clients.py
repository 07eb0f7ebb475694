"""Several clients of a runtime: quotas, accounts, needs, and what operators do to them."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runtime as rt
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow

add_one = rt.function(library="numpy", outputs=lambda x: x)(lambda x: x + 1)


def until(holds: Callable[[], bool]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end_s
        time.sleep(0.01)


@pytest.fixture(scope="module")
def runtime() -> Iterator[rt.LocalRuntime]:
    quotas = {"few bytes": rt.Quota(most_bytes=100), "few arrays": rt.Quota(most_arrays=2), "free": rt.Quota()}
    with rt.local(islands=2, hosts=1, devices=2, quotas=quotas) as started:
        yield started


def total(runtime: rt.Runtime, name: str) -> dict[str, Any]:
    (found,) = [each for each in runtime.status()["clients"] if each["client"].startswith(f"{name}#")]
    return dict(found["total"])


def test_bytes_beyond_the_quota_are_refused_by_name_until_others_go(runtime: rt.LocalRuntime) -> None:
    with rt.connect(runtime.address, runtime.tokens["few bytes"]) as client:
        add = rt.pmap(add_one, devices=client.make_virtual_device_set().add_slice(1))
        held = add(np.zeros(8)).wait(PATIENCE_S)
        refused = add(np.zeros(5))
        with pytest.raises(
            rt.RefusedError, match="few bytes: quota: it holds 64 of at most 100 bytes, and asks for 40"
        ):
            refused.wait(PATIENCE_S)
        assert total(runtime, "few bytes")["held_bytes"] == 64
        assert (held.numpy(PATIENCE_S) == 1).all()
        del held
        until(lambda: total(runtime, "few bytes")["held_bytes"] == 0)
        assert (add(np.zeros(12)).numpy(PATIENCE_S) == 1).all()


def test_copies_count_on_each_device(runtime: rt.LocalRuntime) -> None:
    with rt.connect(runtime.address, runtime.tokens["few bytes"]) as client:
        devices = client.make_virtual_device_set().add_slice(2)
        copied = rt.pmap(add_one, devices=devices, in_axes=None, out_axes=None)
        with pytest.raises(rt.RefusedError, match="asks for 112 more"):
            copied(np.zeros(7)).wait(PATIENCE_S)


def test_a_client_that_leaks_handles_is_refused_more_and_others_go_on(runtime: rt.LocalRuntime) -> None:
    with rt.connect(runtime.address, runtime.tokens["few arrays"]) as client:
        add = rt.pmap(add_one, devices=client.make_virtual_device_set().add_slice(1))
        leaked = [add(np.zeros(1)) for _ in range(3)]
        with pytest.raises(rt.RefusedError, match="few arrays: quota: it holds 2 of at most 2 arrays"):
            leaked[2].wait(PATIENCE_S)
        assert leaked[1].item() == 1
        other = rt.pmap(add_one, devices=runtime.make_virtual_device_set().add_slice(1))
        assert other(np.zeros(1)).item() == 1


def test_device_time_is_accounted(runtime: rt.LocalRuntime) -> None:
    with rt.connect(runtime.address, runtime.tokens["free"]) as client:
        wait = rt.pmap(rt.timer(0.05), devices=client.make_virtual_device_set().add_slice(2))
        wait(wait(np.zeros(2))).wait(PATIENCE_S)
        until(lambda: total(runtime, "free")["executions"] == 2)
        assert total(runtime, "free")["device_s"] == pytest.approx(0.2)


def test_time_of_the_cpus_of_hosts_is_no_device_time(runtime: rt.LocalRuntime) -> None:
    with rt.connect(runtime.address, runtime.tokens["free"]) as client:
        before = total(runtime, "free")
        devices = client.make_virtual_device_set().add_slice(2)
        of_hosts, of_devices = (
            rt.pmap(rt.timer(seconds), devices=each) for seconds, each in ((0.05, devices.host_cpus), (0.02, devices))
        )
        of_devices(of_hosts(of_hosts(np.zeros(2)))).wait(PATIENCE_S)
        until(lambda: total(runtime, "free")["executions"] == before["executions"] + 3)
        after = total(runtime, "free")
        assert after["host_s"] - before["host_s"] == pytest.approx(0.2)
        assert after["device_s"] - before["device_s"] == pytest.approx(0.04)


def test_a_suspended_client_waits_and_goes_on_when_resumed(runtime: rt.LocalRuntime) -> None:
    with rt.connect(runtime.address, runtime.tokens["free"]) as client:
        add = rt.pmap(add_one, devices=client.make_virtual_device_set().add_slice(2))
        held = add(np.zeros(2)).wait(PATIENCE_S)
        runtime.suspend("free")
        with pytest.raises(rt.RefusedError, match="is suspended"):
            runtime.suspend("free")
        after = add(held)
        with pytest.raises(TimeoutError):
            after.wait(0.2)
        (shown,) = [each for each in runtime.status()["clients"] if each["client"].startswith("free#")]
        assert (shown["is_suspended"], shown["executions"]) == (True, 0)
        waiting = rt.pmap(add_one, devices=runtime.make_virtual_device_set().add_slice(2))
        assert (waiting(np.zeros(2)).numpy(PATIENCE_S) == 1).all()
        runtime.resume("free")
        assert (after.numpy(PATIENCE_S) == 2).all()


def test_a_client_moves_to_another_island_with_its_arrays(runtime: rt.LocalRuntime) -> None:
    with rt.connect(runtime.address, runtime.tokens["free"]) as client:
        add = rt.pmap(add_one, devices=client.make_virtual_device_set().add_slice(2))
        x: Any = np.zeros(2)
        for island in ("island-1", "island-0", "island-1"):
            runtime.migrate("free", island)
            x = add(x).wait(PATIENCE_S)
            number = int(island[-1])
            events = [each for each in runtime.trace() if each["ph"] == "X" and each["cat"].startswith("free#")]
            assert max(events, key=lambda event: event["ts"])["pid"] == number
        assert (x.numpy(PATIENCE_S) == 3).all()
        with pytest.raises(rt.RefusedError, match="atlantis"):
            runtime.migrate("free", "atlantis")


def test_who_is_no_operator_manages_nobody(runtime: rt.LocalRuntime) -> None:
    with (
        rt.connect(runtime.address, runtime.tokens["free"]) as client,
        pytest.raises(rt.RefusedError, match="client free is no operator"),
    ):
        client.suspend("local")


def test_what_runs_on_the_cpus_of_hosts_takes_nothing_of_the_share_of_devices(tmp_path: Path) -> None:
    gate = str(tmp_path / "gate")

    @rt.function(library="numpy", outputs=lambda x: x)
    def wait_for_gate(x: Any) -> Any:
        while not Path(gate).exists():
            time.sleep(0.01)
        return x

    with rt.local(devices=1, policy="shares", weights={"feeding": 1, "other": 1}) as runtime:
        clients = [rt.connect(runtime.address, runtime.tokens[name]) for name in ("feeding", "other")]
        feeding, other = (client.make_virtual_device_set().add_slice(1) for client in clients)
        fed = rt.pmap(rt.timer(1.0), devices=feeding.host_cpus)(np.ones(1)).wait(PATIENCE_S)
        rt.pmap(rt.timer(0.001), devices=other)(np.ones(1)).wait(PATIENCE_S)
        rt.pmap(wait_for_gate, devices=runtime.make_virtual_device_set().add_slice(1))(np.ones(1))
        started = [[rt.pmap(rt.timer(0.02), devices=each)(np.ones(1)) for _ in range(30)] for each in (other, feeding)]
        for client in clients:
            client.status()  # the server has taken all that came before
        Path(gate).touch()
        started[0][-1].wait(PATIENCE_S)
        # Charged for its second on the CPU, the feeding client would be served after all of the other's 0.6 s.
        (account,) = [each for each in runtime.status()["clients"] if each["client"].startswith("feeding")]
        assert account["executions"] < 20
        assert fed.shape == (1,)
        for client in clients:
            client.close()


def test_what_is_needed_earliest_goes_first(tmp_path: Path) -> None:
    gate = str(tmp_path / "gate")

    @rt.function(library="numpy", outputs=lambda x: x)
    def wait_for_gate(x: Any) -> Any:
        while not Path(gate).exists():
            time.sleep(0.01)
        return x

    with rt.local(devices=1, policy="earliest-need", look_ahead_s=1e-6) as runtime:
        devices = runtime.make_virtual_device_set().add_slice(1)
        waiting = rt.pmap(wait_for_gate, devices=devices)(np.ones(1))
        until(lambda: runtime.status()["hosts"][0]["queued"] == [1])
        called = []
        for name, need_s in (("whenever", None), ("late", 100.0), ("soon", 50.0)):
            pause = rt.pmap(rt.timer(0.001, name=name), devices=devices)
            if need_s is None:
                called.append(pause(np.ones(1)))
            else:
                with rt.needed_in(need_s):
                    called.append(pause(np.ones(1)))
        runtime.status()  # the server has taken all that came before
        Path(gate).touch()
        for each in (waiting, *called):
            each.wait(PATIENCE_S)
        ran = sorted((each for each in runtime.trace() if each["ph"] == "X"), key=lambda each: each["ts"])
        assert [each["name"] for each in ran] == ["wait_for_gate", "soon", "late", "whenever"]


def test_a_killed_server_ends_the_wait_of_all_clients() -> None:
    with rt.local(devices=1, weights={"one": 1, "two": 1}) as runtime:
        clients = [rt.connect(runtime.address, runtime.tokens[name]) for name in ("one", "two")]
        ended: list[rt.RuntimeFailure] = []

        def wait(client: rt.Runtime) -> None:
            pause = rt.pmap(rt.timer(60), devices=client.make_virtual_device_set().add_slice(1))
            try:
                pause(np.ones(1)).wait(PATIENCE_S)
            except rt.RuntimeFailure as error:
                ended.append(error)

        threads = [threading.Thread(target=wait, args=(client,)) for client in clients]
        for thread in threads:
            thread.start()
        until(lambda: sum(runtime.status()["hosts"][0]["queued"]) > 0)
        os.kill(runtime.status()["pid"], signal.SIGKILL)
        for thread in threads:
            thread.join()
        assert [str(error) for error in ended] == ["the server is gone"] * 2
        for client in clients:
            client.close()


def test_programs_beyond_the_quota_are_held_back_until_others_have_ended() -> None:
    with (
        rt.local(devices=2, quotas={"busy": rt.Quota(most_programs=2)}) as runtime,
        rt.connect(runtime.address, runtime.tokens["busy"]) as client,
        rt.connect(runtime.address, runtime.tokens["busy"]) as sibling,
    ):
        wait = rt.pmap(rt.timer(0.1), devices=client.make_virtual_device_set().add_slice(1))
        add = rt.pmap(add_one, devices=client.make_virtual_device_set().add_slice(1))
        x: Any = np.zeros(1)
        for _ in range(6):
            x = add(wait(x))
        other = rt.pmap(add_one, devices=sibling.make_virtual_device_set().add_slice(1))(np.zeros(1))
        shown = {each["number"]: each for each in runtime.status()["clients"] if each["client"].startswith("busy")}
        assert sum(each["executions"] for each in shown.values()) == 2
        assert sum(each["held_back"] for each in shown.values()) >= 11
        assert rt.pmap(add_one, devices=runtime.make_virtual_device_set().add_slice(1))(np.zeros(1)).item() == 1
        assert other.item() == 1
        assert x.item() == 1  # a timer gives zeros
        until(lambda: total(runtime, "local")["executions"] >= 1)
        with pytest.raises(ValueError, match="most_programs: expected at least one, got 0"):
            rt.Quota(most_programs=0)


def test_a_client_that_is_killed_with_programs_held_back_leaves_nothing_behind() -> None:
    with rt.local(devices=1, quotas={"busy": rt.Quota(most_programs=1)}) as runtime:
        client = rt.connect(runtime.address, runtime.tokens["busy"])
        wait = rt.pmap(rt.timer(600), devices=client.make_virtual_device_set().add_slice(1))
        kept = [wait(np.zeros(1)) for _ in range(3)]
        until(lambda: total(runtime, "busy")["arrays"] == 1)
        client.close()
        until(lambda: len(runtime.status()["clients"]) == 1)
        assert sum(runtime.status()["hosts"][0]["queued"]) == 0
        with rt.connect(runtime.address, runtime.tokens["busy"]) as again:
            add = rt.pmap(add_one, devices=again.make_virtual_device_set().add_slice(1))
            assert add(np.zeros(1)).item() == 1
        assert len(kept) == 3
