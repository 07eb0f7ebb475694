"""A client that sends far more than is served: others keep their share, and what the server keeps of it is bounded."""

import threading
from collections import deque
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import runtime as rt
from tests.patience import PATIENCE_S
from tests.runtime.ranking import until

CALL_S = 0.01
CALLS, AHEAD = 60, 4
FLOOD = 4000
ITEMS = 1 << 15
"""256 kB in each argument, so a flood is 1 GB."""
MOST_GROWTH_BYTES = 400 << 20
"""What is held back of a connection is at most 64 MiB, beside what the kernel and programs under way have."""


def resident_bytes(pid: int) -> int:
    """The memory of a process that is there."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) << 10


def device_s(runtime: rt.Runtime) -> dict[str, float]:
    return {each["client"].partition("#")[0]: each["total"]["device_s"] for each in runtime.status()["clients"]}


@pytest.mark.slow
def test_a_flood_takes_no_more_than_its_share_and_the_server_stays_small() -> None:
    quotas = {"flood": rt.Quota(most_programs=8), "calm": rt.Quota()}
    with rt.local(hosts=1, devices=1, policy="shares", quotas=quotas) as runtime:
        pid = runtime.status()["pid"]
        before_bytes = resident_bytes(pid)
        flood = rt.connect(runtime.address, runtime.tokens["flood"])
        wait = rt.pmap(rt.timer(CALL_S), devices=flood.make_virtual_device_set().add_slice(1))

        def pour() -> None:
            given = np.zeros(ITEMS)
            with suppress(rt.RuntimeFailure):  # the connection is closed below
                for _ in range(FLOOD):
                    wait(given)

        pouring = threading.Thread(target=pour)
        pouring.start()
        try:
            until(lambda: max(each["held_back"] for each in runtime.status()["clients"]) > 200)
            with rt.connect(runtime.address, runtime.tokens["calm"]) as calm:
                own = rt.pmap(rt.timer(CALL_S), devices=calm.make_virtual_device_set().add_slice(1))
                began_s, under_way, most_bytes = device_s(runtime), deque[rt.Array](), 0
                for _ in range(CALLS):
                    while len(under_way) < AHEAD:
                        under_way.append(own(np.zeros(2)))
                    under_way.popleft().wait(PATIENCE_S)
                    most_bytes = max(most_bytes, resident_bytes(pid))
                ended_s = device_s(runtime)
        finally:
            flood.close()
            pouring.join(PATIENCE_S)
        used_s = {name: ended_s[name] - began_s[name] for name in ("flood", "calm")}
        print(f"used {used_s}, server from {before_bytes >> 20} to {most_bytes >> 20} MiB")
        assert used_s["calm"] >= used_s["flood"] / 2
        assert most_bytes - before_bytes < MOST_GROWTH_BYTES
        until(lambda: len(runtime.status()["clients"]) == 1)
        assert not any(host["queued"][0] for host in runtime.status()["hosts"])


def refusal(array: rt.Array) -> str:
    """Why there is no such array; nothing where it is there."""
    try:
        array.wait(PATIENCE_S)
    except rt.RefusedError as error:
        return str(error)
    return ""


@pytest.mark.slow
def test_what_a_flood_would_hold_beyond_its_quota_is_refused_by_name_and_others_go_on() -> None:
    most_bytes = 100 << 20
    quotas = {"flood": rt.Quota(most_bytes=most_bytes), "calm": rt.Quota()}
    with (
        rt.local(hosts=1, devices=1, policy="shares", quotas=quotas) as runtime,
        rt.connect(runtime.address, runtime.tokens["flood"]) as flood,
        rt.connect(runtime.address, runtime.tokens["calm"]) as calm,
    ):
        big = rt.pmap(
            rt.timer(0.0, outputs=rt.ArraySpec((8 << 20,), "uint8")),
            devices=flood.make_virtual_device_set().add_slice(1),
        )
        own = rt.pmap(rt.timer(CALL_S), devices=calm.make_virtual_device_set().add_slice(1))
        made = [big(np.zeros(1)) for _ in range(100)]
        own(np.zeros(2)).wait(PATIENCE_S)
        refusals = [said for each in made if (said := refusal(each))]
        assert len(made) - len(refusals) <= most_bytes // (8 << 20)
        assert all("client flood: quota: it holds" in said for said in refusals)
        own(np.zeros(2)).wait(PATIENCE_S)
        (held,) = (each["total"]["held_bytes"] for each in runtime.status()["clients"] if "flood" in each["client"])
        assert held <= most_bytes
        made.clear()
        until(lambda: all(host["queued"] == [0] for host in runtime.status()["hosts"]))
        assert big(np.zeros(1)).wait(PATIENCE_S).shape == (8 << 20,)
