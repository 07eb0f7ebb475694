"""Pictures of ``trainyard runtime trace``: what devices ran last."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainyard.cli.exits import fail, refuse

if TYPE_CHECKING:
    from experiments.report.style import FigureFormat

_US_PER_S = 1e6


def picture_format(file: Path) -> "FigureFormat":
    """Return the format that the name of a file says, or end the command."""
    from experiments.report.style import FigureFormat

    try:
        return FigureFormat(file.suffix.removeprefix("."))
    except ValueError:
        refuse(
            f"--picture: expected a file that ends with {' or '.join(f'.{each}' for each in FigureFormat)}, got {file}"
        )


def draw(events: Sequence[Mapping[str, Any]], file: Path, file_format: "FigureFormat", last_s: float) -> None:
    """Draw the last seconds of a trace into a file, or end the command."""
    from experiments.report.device_rows import device_rows
    from experiments.report.figure import save_figure

    end_us = max((event["ts"] + event["dur"] for event in events if event["ph"] == "X"), default=0.0)
    try:
        figure = device_rows(events, file.stem, max(0.0, end_us - last_s * _US_PER_S) / 1e3, end_us / 1e3)
        save_figure(figure, file, file_format)
    except ValueError as error:
        fail(f"{file}: {error}")
    except OSError as error:
        fail(f"{file}: cannot be written: {error.strerror}")
