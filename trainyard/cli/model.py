"""``trainyard model``: the blocks of a model, with parameters, FLOPs and what each passes on."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from topologies.printable import printable
from trainyard.cli.answers import Answer, OutputFormat, OutputOption, Writer
from trainyard.cli.exits import refuse
from trainyard.cli.inputs import read_model
from trainyard.cli.output import number_table
from workloads.described.catalogue import PublicModel, public_model
from workloads.described.description import ModelBlock, ModelDescription

ModelArgument = Annotated[
    str, typer.Argument(metavar="MODEL", help=f"A file (YAML), or one of {', '.join(PublicModel)}.")
]


def model(name: ModelArgument, output: OutputOption = OutputFormat.TABLE) -> None:
    """Show the blocks of a model, public or in a file: parameters, FLOPs, and what each passes on."""
    described = _described(name)
    rows = list(_rows(described))
    document = {
        "model": described.name,
        "source": described.source,
        "parameters": described.parameters,
        "active_parameters": described.active_parameters,
        "forward_flops": described.forward_flops,
        "training_flops": 3 * described.forward_flops,
        "blocks": rows,
    }
    Writer(output).write(Answer(document, rows, lambda: _table(described, rows)))


def _described(name: str) -> ModelDescription:
    if name in list(PublicModel):
        return public_model(PublicModel(name))
    path = Path(name)
    if not path.suffix and not path.exists():
        refuse(f"{printable(name)}: expected a file, or one of {', '.join(PublicModel)}")
    return read_model(path)


def _rows(described: ModelDescription) -> Iterator[dict[str, Any]]:
    """Yield a row for every run of equal blocks."""
    for _, run in groupby(described.blocks, lambda block: (block.parts, block.output)):
        blocks: Sequence[ModelBlock] = list(run)
        parts = blocks[0].parts
        yield {
            "block": blocks[0].name,
            "times": len(blocks),
            "layers": len(parts),
            "parameters": sum(part.numbers.parameters for part in parts),
            "active_parameters": sum(part.numbers.active_parameters for part in parts),
            "forward_flops": sum(part.numbers.flops for part in parts),
            "activations": blocks[0].output.elements,
        }


def _table(described: ModelDescription, rows: Sequence[dict[str, Any]]) -> Table:
    table = number_table(
        f"{described.name}: {described.parameters:,} parameters, of which a token meets"
        f" {described.active_parameters:,}; {described.forward_flops:.4g} FLOPs forward for one sample",
        *("Block", "Times", "Layers", "Parameters", "Active", "FLOPs forward", "Activations"),
    )
    for row in rows:
        counts = (f"{row[key]:,}" for key in ("times", "layers", "parameters", "active_parameters"))
        table.add_row(row["block"], *counts, f"{row['forward_flops']:.4g}", f"{row['activations']:,}")
    return table
