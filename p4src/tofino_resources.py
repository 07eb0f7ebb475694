"""What a program takes of a Tofino, read from the logs of its compiler, as a Markdown table.

p4c's ``resources.json`` names the user of every memory block of every stage, ``phv.json`` every container.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_STAGES = 12
_SRAM_BLOCKS = 80 * _STAGES
"""Of 1,024 words of 128 bits each."""
_TCAM_BLOCKS = 24 * _STAGES
"""Of 512 words of 44 bits each."""
_CONTAINERS = {("normal", 8): 64, ("normal", 16): 96, ("normal", 32): 64, ("tagalong", 8): 32}
_CONTAINERS |= {("tagalong", 16): 48, ("tagalong", 32): 32}
_REST = "conditions, actions without a table, checksums"


@dataclass
class Taken:
    """Stages, and blocks of memory, that one table or extern takes."""

    stages: set[int] = field(default_factory=set)
    sram_blocks: int = 0
    tcam_blocks: int = 0


def resources_table(logs: Path, sizes: Mapping[str, int]) -> str:
    """Return the table for the logs of a compilation.

    Args:
        logs: The folder that p4c writes them to, with ``--verbose 1`` or more.
        sizes: Entries or cells by the name of tables, counters, meters and registers; all others count together.
    """
    stages = _read(logs / "resources.json")["resources"]["mau"]["mau_stages"]
    containers = _read(logs / "phv.json")["containers"]
    taken = taken_of(stages, sizes)
    numbers = sorted({stage for part in taken.values() for stage in part.stages})
    srams, tcams = (sum(getattr(part, name) for part in taken.values()) for name in ("sram_blocks", "tcam_blocks"))
    rows = [
        (name, f"{sizes[name]:,}" if sizes.get(name) else "", _ranges(part.stages), part.sram_blocks, part.tcam_blocks)
        for name, part in sorted(taken.items(), key=lambda item: (item[0] == _REST, min(item[1].stages), item[0]))
    ]
    return "\n".join(
        [
            f"{len(numbers)} of {_STAGES} stages, {srams} of {_SRAM_BLOCKS} blocks of SRAM, {tcams} of {_TCAM_BLOCKS}"
            " blocks of TCAM.",
            "",
            "| | Entries | Stages | SRAM | TCAM |",
            "|---|---|---|---|---|",
            *(f"| {' | '.join(str(cell or '') for cell in row)} |" for row in rows),
            "",
            "| Containers | Taken | Of |",
            "|---|---|---|",
            *(
                f"| {kind}, {width} bits | {number} | {_CONTAINERS[kind, width]} |"
                for (kind, width), number in _containers(containers)
            ),
            "",
        ]
    )


def taken_of(stages: Iterable[Mapping[str, Any]], sizes: Mapping[str, int]) -> dict[str, Taken]:
    """Return what each of these names takes of these stages, and the rest together."""
    taken: defaultdict[str, Taken] = defaultdict(Taken)
    for stage in stages:
        number = stage["stage_number"]
        for table in stage["logical_tables"]["ids"]:
            taken[_name(table["table_name"], sizes)].stages.add(number)
        for block in stage["rams"]["srams"]:
            part = taken[_name(block["usages"][0]["used_by"], sizes)]
            part.sram_blocks += 1
            part.stages.add(number)
        for block in stage["tcams"]["tcams"]:
            taken[_name(block["usages"][0]["used_by"], sizes)].tcam_blocks += 1
    return dict(taken)


def _name(used_by: str, sizes: Mapping[str, int]) -> str:
    name = used_by.partition("$")[0].lstrip(".")
    return name if name in sizes else _REST


def _containers(containers: Iterable[Mapping[str, Any]]) -> list[tuple[tuple[str, int], int]]:
    """Return the number of containers by kind and width."""
    each = {(one["container_type"], one["bit_width"], one["phv_number"]) for one in containers}
    return sorted(Counter((kind, width) for kind, width, _ in each).items())


def _ranges(numbers: set[int]) -> str:
    """Return numbers as text: ``0, 4-6``."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][-1] == number - 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def _read(path: Path) -> Any:
    return json.loads(path.read_text())
