"""The programs of all targets: their files, what they have room for, and whether a switch holds one.

The numbers by which targets differ are in ``topologies.targets``.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from finsy import P4Schema
from finsy.proto import p4i

from controller.southbound.p4runtime.entries import TABLES
from controller.southbound.p4runtime.slots import MAX_GROUPS
from controller.southbound.states import EntryKey, EntryKind
from p4src import BUILD, P4INFO, PROGRAM, TNA_P4INFO
from topologies.printable import printable
from topologies.targets import TARGETS, Target, TargetFacts

_P4INFO = {"v1model": P4INFO.relative_to(BUILD), "tna": TNA_P4INFO.relative_to(BUILD)}
"""P4Infos in the folder of the compiled program, by architecture."""

_DEVICE_CONFIG = {"v1model": PROGRAM.relative_to(BUILD)}
"""What is loaded with it, where it does not depend on the switch's software."""


@dataclass(frozen=True, eq=False)
class Program:
    """The program of a target.

    Attributes:
        facts: The target's numbers.
        schema: Its P4Info.
        device_config: The file that is loaded into a switch that runs another program; None: nothing is.
    """

    facts: TargetFacts
    schema: P4Schema
    device_config: Path | None

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """The entries that the controller's tables have room for, by table."""
        tables = ((name, self.schema.tables.get(name)) for name in TABLES)
        return {name: table.size for name, table in tables if table is not None}

    def overflow(self, keys: Iterable[EntryKey]) -> str:
        """Return what a switch has no room for of such entries; empty where they fit."""
        asked: Counter[EntryKind] = Counter()
        groups: set[int] = set()
        for kind, identity in keys:
            asked[kind] += 1
            if kind is EntryKind.GROUP and isinstance(identity, tuple):
                groups.add(dict(identity)["group"])
        if len(groups) > MAX_GROUPS:
            return f"its routes ask for {len(groups):,} ECMP groups, it has room for {MAX_GROUPS:,}"
        for table, size in self.sizes.items():
            if asked[TABLES[table]] > size:
                return f"table {table} is to have {asked[TABLES[table]]:,} entries, it has room for {size:,}"
        return ""

    def difference_from(self, held: p4i.P4Info) -> str:
        """Return how the program that a switch holds differs; empty where it is this one."""
        if self.is_for_another_target(held):
            return (
                f"it runs a program for {printable(held.pkg_info.arch)}, that of its target in the topology is for"
                f" {self.schema.arch}"
            )
        if not self.schema.has_p4info(held):
            return "it runs another pipeline than the one that this controller writes to"
        return ""

    def is_for_another_target(self, held: p4i.P4Info) -> bool:
        """Return whether a switch holds a program of another architecture, so that it cannot run this one."""
        return held.pkg_info.arch not in ("", self.schema.arch)


class Programs:
    """The programs of all targets, each read once when a switch has it.

    Args:
        folder: The folder of the compiled program.
        device_config: What Tofino switches load; None: they run the program already.
    """

    def __init__(self, folder: Path, device_config: Path | None) -> None:
        self._folder = folder
        self._device_config = device_config
        self._known: dict[str, Program] = {}

    def of(self, target: Target) -> Program:
        """Return the program of a target. Raises OSError where its P4Info cannot be read."""
        facts = TARGETS[target]
        if facts.architecture not in self._known:
            p4info, device_config = files_of(target)
            self._known[facts.architecture] = Program(
                facts,
                P4Schema(self._folder / p4info),
                self._device_config if device_config is None else self._folder / device_config,
            )
        return self._known[facts.architecture]


def files_of(target: Target) -> tuple[Path, Path | None]:
    """Return the files of a target's program in the folder of the compiled one: P4Info, and what is loaded with it."""
    architecture = TARGETS[target].architecture
    return _P4INFO[architecture], _DEVICE_CONFIG.get(architecture)
