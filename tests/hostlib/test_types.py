"""What a job reports is checked when it is made, and the error names the field."""

import asyncio
from collections.abc import Callable
from ipaddress import IPv4Address

import numpy as np
import pytest

from hostlib import Client, FiveTuple, Flow, FlowGroup, GroupInstance, Job, Nic, Profile

PROFILE = Profile(1.0, 0.5, 16.0)
HERE, THERE = Nic("h0"), Nic("h1")
FLOW = Flow(HERE, THERE, 1000)
ADDRESSES = IPv4Address("10.0.0.1"), IPv4Address("10.0.0.2")
OPENED = FiveTuple(*ADDRESSES, 6, 1, 2)

WRONG: dict[str, tuple[str, Callable[[], object]]] = {
    "float of bytes": ("size_bytes: expected an integer, got 3500000000.0", lambda: Flow(HERE, THERE, 3.5e9)),
    "negative bytes": ("size_bytes: must lie between 0 and", lambda: Flow(HERE, THERE, -1)),
    "too many bytes": ("size_bytes: must lie between 0 and", lambda: Flow(HERE, THERE, (1 << 63) + 1)),
    "bytes beyond words": ("size_bytes: must lie between 0 and", lambda: Flow(HERE, THERE, 10**5000)),
    "bytes of text": ("size_bytes: expected an integer, got '1'", lambda: Flow(HERE, THERE, "1")),
    "host for a NIC": ("source: expected a Nic, got 'h0'", lambda: Flow("h0", "h1", 1)),
    "destination": ("destination: expected a Nic, got 'h1'", lambda: Flow(HERE, "h1", 1)),
    "negative offset": ("offset_s: expected a number", lambda: Flow(HERE, THERE, 1, offset_s=-0.1)),
    "no offset": ("offset_s: expected a number", lambda: Flow(HERE, THERE, 1, offset_s=float("nan"))),
    "five-tuple": ("five_tuple: expected a FiveTuple", lambda: Flow(HERE, THERE, 1, five_tuple=(1, 2))),
    "held port": ("held_source_port: must lie", lambda: Flow(HERE, THERE, 1, held_source_port=1 << 16)),
    "no port": ("tcp_port: must lie between 1 and", lambda: Flow(HERE, THERE, 1, tcp_port=0)),
    "two ports": ("tcp_port: expected none beside", lambda: Flow(HERE, THERE, 1, five_tuple=OPENED, tcp_port=4)),
    "one flow": ("flows: expected a tuple, each item a Flow", lambda: FlowGroup("ring", flows=FLOW)),
    "no flow": (r"flows\[1\]: expected a Flow, got 3", lambda: FlowGroup("ring", flows=(FLOW, 3))),
    "number of flows": ("flows: expected a tuple", lambda: FlowGroup("ring", flows=3)),
    "no flows": ("flows: expected at least one flow", lambda: FlowGroup("ring", ())),
    "slash": ("name: expected 1 to 256 printable", lambda: FlowGroup("a/b", (FLOW,))),
    "negative GPUs": ("gpus: must lie between 1 and", lambda: Job("gpt", ("h0",), gpus=-2)),
    "too many GPUs": ("gpus: must lie between 1 and", lambda: Job("gpt", ("h0",), gpus=1 << 32)),
    "half a GPU": ("gpus: expected an integer, got 0.5", lambda: Job("gpt", ("h0",), gpus=0.5)),
    "one host": ("hosts: expected a tuple, each item text, got 'h0'", lambda: Job("gpt", "h0", 1)),
    "no hosts": ("hosts: expected at least one host", lambda: Job("gpt", (), 1)),
    "number of a host": (r"hosts\[1\]: expected text, got 7", lambda: Job("gpt", ("h0", 7), 1)),
    "no name": ("name: expected 1 to 256 printable", lambda: Job("", ("h0",), 1)),
    "long name": ("name: expected 1 to 256 printable", lambda: Job("x" * 257, ("h0",), 1)),
    "half a character": ("name: expected 1 to 256 printable", lambda: Job("\ud800", ("h0",), 1)),
    "name of bytes": ("name: expected text, got b'gpt'", lambda: Job(b"gpt", ("h0",), 1)),
    "profile": ("profile: expected a Profile, got 1.0", lambda: Job("gpt", ("h0",), 1, 1.0)),
    "no time": ("compute_s: expected a number that is finite", lambda: Profile(float("inf"), 0.5, 1.0)),
    "time of text": ("compute_s: expected a number that is finite", lambda: Profile("1", 0.5, 1.0)),
    "time beyond numbers": ("compute_s: expected a number that is finite", lambda: Profile(10**5000, 0.5, 1.0)),
    "share": ("comm_start: expected a number that is between 0 and 1", lambda: Profile(1.0, 1.5, 1.0)),
    "work": ("work: expected a number that is finite", lambda: Profile(1.0, 0.5, float("nan"))),
    "NIC": ("index: must lie between 0 and", lambda: Nic("h0", -1)),
    "host of a NIC": ("host: expected text, got 0", lambda: Nic(0)),
    "protocol": ("protocol: must lie between 0 and 255", lambda: FiveTuple(*ADDRESSES, 256, 1, 1)),
    "port": ("source_port: must lie between 0 and 65535", lambda: FiveTuple(*ADDRESSES, 17, 1 << 16, 1)),
    "address": ("source_address: expected an IPv4Address", lambda: FiveTuple("10.0.0.1", ADDRESSES[1], 17, 1, 1)),
    "iteration": ("iteration: must lie between 0 and", lambda: GroupInstance(-1)),
    "large iteration": ("iteration: must lie between 0 and", lambda: GroupInstance(1 << 63)),
    "end": ("has_ended: expected a bool, got 'yes'", lambda: GroupInstance(1, "yes")),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_no_controller_could_accept_is_refused_by_the_field(case: str) -> None:
    problem, make = WRONG[case]
    with pytest.raises(ValueError, match=problem) as refused:
        make()
    assert len(str(refused.value)) < 300


def test_lists_and_numpys_numbers_become_pythons() -> None:
    flow = Flow(Nic("h0", np.uint8(1)), THERE, np.int64(1000), offset_s=np.float32(0.5))
    assert flow == Flow(Nic("h0", 1), THERE, 1000, offset_s=0.5)
    assert [type(value) for value in (flow.size_bytes, flow.offset_s, flow.source.index)] == [int, float, int]
    group = FlowGroup("ring", [FLOW])
    job = Job("gpt", ["h0", "h1"], np.int32(16), Profile(1, 0, np.float64(2)))
    assert (group.flows, job.hosts, job.gpus) == ((FLOW,), ("h0", "h1"), 16)
    assert {type(value) for value in (job.gpus, job.profile.compute_s, job.profile.work)} == {int, float}
    assert hash(group) == hash(FlowGroup("ring", (FLOW,)))
    assert GroupInstance(np.int64(3)) == GroupInstance(3)


async def _acknowledged(client: Client, timeout_s: float) -> None:
    await client.acknowledged("gpt", timeout_s)


def test_arguments_of_calls_are_checked_like_fields() -> None:
    async def scenario() -> None:
        async with Client("127.0.0.1:1") as client:
            client.register_job(Job("gpt", ("h0", "h1"), 16, PROFILE))
            client.register_flow_groups("gpt", [FlowGroup("ring", (FLOW,))])
            wrong: list[tuple[str, Callable[[], object]]] = [
                ("job: expected a Job", lambda: client.register_job("gpt")),
                ("job: expected text", lambda: client.deregister(7)),
                ("job: expected text", lambda: client.refusal(["gpt"])),
                ("flow_groups: expected", lambda: client.register_flow_groups("gpt", FlowGroup("a", (FLOW,)))),
                (r"flow_groups\[0\]: expected a FlowGroup", lambda: client.register_flow_groups("gpt", ["ring"])),
                ("flow_groups: expected", lambda: client.start_flow_groups("gpt", "ring", 1)),
                ("iteration: expected an integer", lambda: client.start_flow_groups("gpt", ["ring"], 1.5)),
                ("iteration: must lie", lambda: client.end_flow_groups("gpt", ["ring"], -1)),
                ("profile: expected a Profile", lambda: client.report_profile("gpt", None)),
            ]
            for problem, call in wrong:
                with pytest.raises(ValueError, match=problem):
                    call()
            for timeout_s in (-1.0, float("nan"), "1", None):
                with pytest.raises(ValueError, match="timeout_s: expected a number"):
                    await _acknowledged(client, timeout_s)
            client.start_flow_groups("gpt", ["ring"], np.int64(3))

    asyncio.run(scenario())
