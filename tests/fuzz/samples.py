"""Valid samples of every file format, from which mutations start, and their mutation."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import yaml

from controller.store.database import Database
from p4src import P4INFO, PROGRAM
from tests.controller.record.lives import Life
from tests.fuzz import openflow
from tests.fuzz.mutations import as_json, as_yaml, mutated_bytes, mutated_document, mutated_lines
from workloads.loading import SHIPPED_SCENARIOS
from workloads.traces.assumptions import SHIPPED_ASSUMPTIONS
from workloads.traces.generator import generate_trace
from workloads.traces.lingjun_writer import write_trace

_COFLOWS = (
    b"6 3\na 0 2 0 1 2 2:10 3:4\nb 5 1 4 1 5:100\nc 7 3 0 1 2 1 3:9\n",
    b"4 2\n1 0 2 2 1 0 2 7 1 2 3\n2 9 1 1 1 3 0 5\n",
)
_CONFIG = {
    "listen": "127.0.0.1:0",
    "agents": True,
    "topology": {"kind": "dumbbell", "hosts_per_side": 2, "host_link_gbps": 100, "bottleneck_gbps": 100},
    "switches": [
        {"name": "t0", "address": "127.0.0.1:9559"},
        {"name": "t1", "address": "127.0.0.1:9560", "gnmi": "h:1"},
    ],
    "policy": "crux",
    "database": "controller.db",
    "leadership": {"lease_s": 5.0, "name": "a"},
    "record": {"plans": 10, "audit_days": 1},
    "damping": {"half_life_s": 15, "cutoff": 1.5, "reuse": 0.75, "longest_hold_s": 60},
    "profiling": {"sample_s": 0.02, "window_s": 30, "check_s": 60, "drift": 0.2},
}
_TOKENS = [
    {"name": "alice", "role": "operator", "sha256": "9f" * 32},
    {"name": "nightly", "role": "job", "tenant": "vision", "sha256": "60" * 32, "expires": "2027-01-31T00:00:00Z"},
]
_TOPOLOGIES = (
    {"kind": "clos", "tors": 2, "aggs": 2, "hosts_per_tor": 2, "host_link_gbps": 100, "uplink_gbps": 100},
    {"kind": "star", "hosts": 3, "host_link_gbps": 100, "pcie": {"gbps": 200}},
    {"kind": "fat_tree", "k": 4, "host_link_gbps": 100, "uplink_gbps": 100, "core_link_gbps": 100},
    {
        "kind": "graph",
        "hosts": ["h0", "h1"],
        "switches": ["s", "t"],
        "links": [{"ends": ["h0", "s"], "gbps": 1}, {"ends": ["s", "t"], "gbps": 1}, {"ends": ["t", "h1"], "gbps": 1}],
    },
)
_MOST_SCENARIO_BYTES = 3_000


@dataclass(frozen=True, slots=True)
class Sample:
    """A valid file. ``parsed`` reads it into mappings and lists that ``written`` writes, where there are any."""

    content: bytes
    parsed: Any = None
    written: Callable[[Any], bytes] | None = None
    is_text: bool = True

    def mutated(self, draws: Random) -> bytes:
        """Return another content, drawn from a seed."""
        if self.written is not None and draws.random() < 0.7:
            content = self.written(mutated_document(self.parsed, draws))
            return mutated_bytes(content, draws) if draws.random() < 0.1 else content
        return (mutated_lines if self.is_text and draws.random() < 0.6 else mutated_bytes)(self.content, draws)


def samples(folder: Path) -> Mapping[str, tuple[Sample, ...]]:
    """Return samples by format; ``folder`` is for what is made on the way."""
    scenarios = [
        path for path in sorted(SHIPPED_SCENARIOS.glob("*.yaml")) if path.stat().st_size < _MOST_SCENARIO_BYTES
    ]
    write_trace(generate_trace(12, 1), folder / "trace")
    return {
        "scenario": tuple(_yaml(path.read_bytes()) for path in scenarios),
        "topology": tuple(_yaml(as_yaml({"topology": topology})) for topology in _TOPOLOGIES),
        "config": (_yaml(as_yaml(_CONFIG)),),
        "tokens": (_yaml(as_yaml(_TOKENS)),),
        "assumptions": (_yaml(SHIPPED_ASSUMPTIONS.read_bytes()),),
        "coflows": tuple(map(Sample, _COFLOWS)),
        **{name: (Sample((folder / "trace" / name).read_bytes()),) for name in ("job.csv", "worker.csv", "topo.csv")},
        "record": (_json_lines(_record(folder)),),
        "results": (_json_lines(_results()),),
        "p4info": (Sample(P4INFO.read_bytes()),),
        "program": (_json(PROGRAM.read_bytes()),),
        "openflow": tuple(Sample(stream, is_text=False) for stream in openflow.streams()),
    }


def _yaml(content: bytes) -> Sample:
    return Sample(content, yaml.safe_load(content), as_yaml)


def _json(content: bytes) -> Sample:
    return Sample(content, json.loads(content), as_json)


def _json_lines(content: bytes) -> Sample:
    documents = [json.loads(line) for line in content.splitlines()]
    return Sample(content, documents, lambda lines: b"".join(as_json(line) + b"\n" for line in lines if True))


def _record(folder: Path) -> bytes:
    """Return what a controller has recorded of six Plans."""
    from controller.record.lines import text_of
    from controller.store.facts import LAST_PLAN_NUMBER, record_lines

    async def live() -> str:
        life = Life(folder / "record.db", "ecmp")
        life.start()
        await life.live(6)
        await life.end()
        return life.database

    database = Database.open(asyncio.run(live()))
    try:
        return database.read(
            lambda connection: "".join(text_of(record_lines(0, LAST_PLAN_NUMBER, connection)))
        ).encode()
    finally:
        database.close()


def _results() -> bytes:
    line = {
        "scenario": "two-jobs",
        "file": "two-jobs.yaml",
        "sha256": "0" * 64,
        "policy": "crux",
        "seed": 1,
        "settings": {"num_levels": 8},
        "backend": "simulator",
        "enforcement": "levels",
        "versions": {"python": "3.11"},
        "result": {"gpu_utilisation": 0.5, "ideal_gpu_utilisation": 0.9, "fluid_bound_gpu_utilisation": 0.8}
        | {"starved_jobs": 0, "worst_speed": 0.5},
    }
    failed = {key: value for key, value in line.items() if key != "result"} | {"seed": 2, "error": "no job departed"}
    return as_json(line) + b"\n" + as_json(failed) + b"\n"
