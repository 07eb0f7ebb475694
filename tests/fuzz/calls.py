"""The campaign over calls: a controller and an emulator of real processes, watched while they are called."""

import re
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import grpc
import yaml

from controller.api.operations import operations_pb2 as operations
from controller.api.operations.methods import LIST_CONTROLLERS, LIST_JOBS
from p4src import P4INFO
from tests.fuzz.findings import Finding, Findings
from tests.fuzz.raw import RawConnections
from tests.fuzz.servers import Server, Usage, num_processes
from tests.fuzz.targets import CONTROLLER_SERVICES, SWITCH_SERVICES, Called, Method, call
from tests.fuzz.templates import GROUPS, HOSTS, JOBS, TOKENS, arbitration
from tests.patience import PATIENCE_S

PROBE_PROCESSOR_S = 5.0
"""Of the controller's processor time, within which a small call must be answered, whatever else goes on. A busy machine
may keep everybody waiting, so that the wall clock does not tell."""
MOST_PROCESSES = 12
_TOPOLOGY = {"kind": "dumbbell", "hosts_per_side": 2, "host_link_gbps": 100, "bottleneck_gbps": 100}
_CALLS_PER_CHANNEL = 30
_CHECKED_EVERY = 10
_WARM_SHARE, _WARM_S = 0.4, 45.0
_DEFECTS = (grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL, grpc.StatusCode.DEADLINE_EXCEEDED)
_ADDRESS = re.compile("0x[0-9a-f]+")
_OF_SEVERAL = re.compile(r"\d+ of \d+ (updates|reads) failed")
"""P4Runtime's status of a request with several parts is UNKNOWN where one of them has failed."""

_CONTROLLER_WORDS: Mapping[str, tuple[Any, ...]] = {
    "protocol_version": ("trainyard.v1",),
    "name": (*JOBS, *GROUPS, "j0/g0/0"),
    "job": JOBS,
    "flow_group": GROUPS,
    "owner_token": TOKENS,
    "hosts": HOSTS,
    "host": HOSTS,
    "nic": (0,),
    "gpus": (1, 2, 8, 16),
    "compute_s": (0.1, 1.0),
    "comm_start": (0.0, 0.5, 1.0),
    "work": (1.0, 100.0),
    "size_bytes": (0, 1, 1_000_000, 10**9),
    "offset_s": (0.0, 0.5),
    "protocol": (6, 17),
    "source_port": (49_152, 49_153, 65_535),
    "destination_port": (4791,),
    "held_source_port": (49_152, 50_000),
    "tcp_port": (1, 40_000),
    "iteration": (0, 1, 2, 3),
}


def _switch_words() -> Mapping[str, tuple[Any, ...]]:
    numbers = tuple(int(word) for word in P4INFO.read_text().split() if word.isdigit() and int(word) > 1 << 23)
    ids = dict.fromkeys(
        ("table_id", "action_id", "counter_id", "meter_id", "register_id", "action_profile_id"), numbers
    )
    small = dict.fromkeys(("field_id", "param_id", "type"), (1, 2, 3, 4)) | {"device_id": (1,)}
    return (
        ids
        | small
        | {"high": (0,), "low": (1000,), "priority": (0, 1, 5), "name": ("interfaces", "interface", "state")}
    )


@dataclass(slots=True)
class _Target:
    """A server under test."""

    server: Server
    address: str
    methods: list[Method]
    words: Mapping[str, tuple[Any, ...]]
    warm: Usage | None = None
    recent: deque[Called] = field(default_factory=lambda: deque(maxlen=20))
    channel: grpc.Channel | None = None
    calls: int = 0

    @property
    def is_settled(self) -> bool:
        """Whether no call that was left may still be at work."""
        return all(called.code is not None for called in list(self.recent)[-5:])

    def connected(self) -> grpc.Channel:
        """Return a channel, a new one now and then."""
        if self.channel is not None and self.calls % _CALLS_PER_CHANNEL == 0:
            self.channel.close()
            self.channel = None
        self.calls += 1
        if self.channel is None:
            options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)]
            self.channel = grpc.insecure_channel(self.address, options)
        return self.channel

    def disconnect(self) -> None:
        if self.channel is not None:
            self.channel.close()
            self.channel = None


def fuzz_calls(folder: Path, seed: int, seconds: float, last: int | None, findings: Findings) -> None:
    """Call everything for so many seconds, or up to the call with the number ``last``."""
    with _servers(folder) as targets:
        campaign = _Campaign(targets, seed, findings)
        with _probing(targets[0], campaign.found), _leading(targets[1].address):
            campaign.run(time.monotonic() + seconds, last)
        for target in targets:
            if (wrong := target.server.end()) is not None:
                campaign.found(f"{target.server.name}: end", wrong)
            campaign.read_log(target)
    print(f"{campaign.number:,} calls", *campaign.summary(), sep="\n")


@contextmanager
def _servers(folder: Path) -> Iterator[list[_Target]]:
    """A controller with its switches, and switches of nobody, while the context lasts."""
    (folder / "topology.yaml").write_text(yaml.safe_dump({"topology": _TOPOLOGY}))
    switches = Server("switches", folder, _emulator("127.0.0.1:20000"), "t1")
    config = {
        "listen": "127.0.0.1:0",
        "agents": True,
        "topology": _TOPOLOGY,
        "switches": [
            {"name": f"t{number}", "address": f"127.0.0.1:{20000 + number}", "device_id": number + 1}
            for number in range(2)
        ],
        "lease_s": 3600,
        "policy_time_limit_s": 5,
        "database": "controller.db",
        "record": {"plans": 50},
    }
    (folder / "controller.yaml").write_text(yaml.safe_dump(config))
    servers = [switches]
    try:
        controller = Server("controller", folder, ("controller", "--config", "controller.yaml"), "listening on")
        servers.append(controller)
        emulator = Server("emulator", folder, _emulator("127.0.0.1:21000"), "t1")
        servers.append(emulator)
        address = controller.started[-1].rpartition(" ")[2]
        yield [
            _Target(controller, address, Method.of(CONTROLLER_SERVICES), _CONTROLLER_WORDS),
            _Target(emulator, "127.0.0.1:21000", Method.of(SWITCH_SERVICES), _switch_words()),
        ]
    finally:
        for server in servers:
            server.end()


def _emulator(address: str) -> tuple[str, ...]:
    return "trainyard", "emulator", "--topology", "topology.yaml", "--listen", address, "--port-per-switch"


@contextmanager
def _probing(target: _Target, found: Callable[[str, str], None]) -> Iterator[None]:
    """Ask the controller for its state all the time, over a connection of its own."""
    over = threading.Event()

    def probe() -> None:
        with grpc.insecure_channel(target.address, [("grpc.use_local_subchannel_pool", 1)]) as channel:
            ask = channel.unary_stream(LIST_CONTROLLERS.method.path)
            while not over.wait(0.2) and target.server.is_alive:
                began_s, processor_s = time.monotonic(), target.server.processor_s()
                problem = ""
                try:
                    list(ask(b"", timeout=PATIENCE_S))
                except grpc.RpcError as error:
                    problem = f"{error.code()}, "
                used_s = target.server.processor_s() - processor_s
                if (problem or used_s > PROBE_PROCESSOR_S) and not over.is_set():
                    waited_s = time.monotonic() - began_s
                    found("controller: a probe", f"{problem}{waited_s:.1f} s, {used_s:.1f} s of processor time")

    prober = threading.Thread(target=probe)
    prober.start()
    try:
        yield
    finally:
        over.set()
        prober.join()


@contextmanager
def _leading(address: str) -> Iterator[None]:
    """Be the primary of a switch, so that its writes go through."""
    with grpc.insecure_channel(address, [("grpc.use_local_subchannel_pool", 1)]) as channel:
        over = threading.Event()

        def requests() -> Iterator[bytes]:
            yield arbitration().SerializeToString()
            over.wait()

        stream = channel.stream_stream("/p4.v1.P4Runtime/StreamChannel")(requests())
        next(stream)
        try:
            yield
        finally:
            over.set()
            stream.cancel()


class _Campaign:
    """Calls, one after the other, and what must hold after each."""

    def __init__(self, targets: list[_Target], seed: int, findings: Findings) -> None:
        self.number = 0
        self._statuses: Counter[tuple[str, str]] = Counter()
        self._targets = targets
        self._seed = seed
        self._findings = findings
        self._raw = RawConnections()

    def run(self, end_s: float, last: int | None) -> None:
        """Call until the time of ``time.monotonic``, or up to a call's number; then look at what has grown."""
        began_s = time.monotonic()
        warm_s = began_s + max(_WARM_S, (end_s - began_s) * _WARM_SHARE)
        is_warm = False
        while (time.monotonic() < end_s) if last is None else (self.number <= last):
            self._call(Random(f"{self._seed}/calls/{self.number}"))
            self.number += 1
            if any(not target.server.is_alive for target in self._targets):
                break
            if not is_warm and time.monotonic() > warm_s:
                is_warm = True
                for target in self._targets:
                    target.warm = self._at_rest(target)
        for target in self._targets:
            if not target.server.is_alive:
                self.found(f"{target.server.name}: dead", "\n".join(map(str, target.recent)))
            elif target.warm is not None and (grown := self._at_rest(target).grown(target.warm)) is not None:
                self.found(f"{target.server.name}: growth", grown)
        if (number := num_processes()) > MOST_PROCESSES:
            self.found("processes", f"{number} processes descend from the fuzzer")

    def summary(self) -> Iterator[str]:
        """Yield how the calls of each method have ended: one that never succeeds is hardly tested."""
        for path in dict.fromkeys(path for path, _ in sorted(self._statuses)):
            ends = ((status, count) for (of, status), count in self._statuses.most_common() if of == path)
            yield f"    {path}: {', '.join(f'{count} {status}' for status, count in ends)}"

    def found(self, kind: str, detail: str) -> None:
        """Keep a finding."""
        self._findings.add(Finding(kind, detail, f"--seed {self._seed} --only calls --case {self.number}"))

    def read_log(self, target: _Target) -> None:
        """Look for tracebacks in what a server has logged since."""
        if (news := target.server.bad_news()) is not None:
            last_line = _ADDRESS.sub("0x", news.strip().splitlines()[-1])[:200]
            self.found(f"{target.server.name}: log: {last_line}", f"{news[-4000:]}\nafter {target.recent[-1]}")

    def _call(self, draws: Random) -> None:
        target = draws.choices(self._targets, (3, 1))[0]
        if draws.random() < 0.05:
            host, _, port = target.address.rpartition(":")
            self._raw.disturb((host, int(port)), draws)
        method = draws.choice(target.methods)
        is_compared = target is self._targets[0] and self.number % _CHECKED_EVERY == 0 and target.is_settled
        before = self._jobs(target) if is_compared else None
        called = call(target.connected(), method, draws, target.words)
        target.recent.append(called)
        self._statuses[method.path, "left" if called.code is None else called.code.name] += 1
        if called.code in _DEFECTS and not _OF_SEVERAL.fullmatch(called.details):
            self.found(f"{target.server.name}: {method.path} {called.code.name} {called.details[:60]!r}", str(called))
        if before is not None and called.is_refused and (after := self._jobs(target)) not in (before, None):
            self.found(f"controller: {method.path} changes what it refuses", f"{before}\n{after}\n{called}")
        self.read_log(target)

    def _jobs(self, target: _Target) -> list[tuple[Any, ...]] | None:
        """Return what the registry holds; None where the question is refused, as a rate limit may do."""
        try:
            answers = list(target.connected().unary_stream(LIST_JOBS.method.path)(b"", timeout=PATIENCE_S))
        except grpc.RpcError:
            return None
        states = [state for octets in answers for state in operations.JobPage.FromString(octets).states]
        return sorted((job.name, *job.hosts, job.gpus, job.flow_groups, job.flows) for job in states)

    def _at_rest(self, target: _Target) -> Usage:
        """Return what a server holds once its clients have left."""
        self._raw.close()
        target.disconnect()
        time.sleep(2.0)
        return target.server.usage()
