"""Runs the readers of Trainyard on a file, as its commands do, and says what a user must not see."""

import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

from typer.testing import CliRunner

from controller.access.reloading_file import ReloadingFiles, UnusableFileError
from controller.access.tokens import parse_tokens
from controller.config import ConfigError, load_config
from emulator.compiler.layout import UnsupportedError
from emulator.compiler.program import compile_program
from emulator.p4runtime.errors import RequestError
from emulator.p4runtime.pipeline import compiled_pipeline
from experiments.sweeps.grid import build_grid, read_files
from experiments.sweeps.output import OutputError, missing_cases, open_output
from experiments.sweeps.summary import summarise
from p4src import P4INFO, PROGRAM
from tests.fuzz import openflow
from topologies.files import read_text
from trainyard.cli.application import application
from workloads.loading import SHIPPED_SCENARIOS, load_topology

_MOST_CHARACTERS = 200_000
"""Of what a command may print about one file."""
_LAYOUT = "\n\N{NO-BREAK SPACE}"


def problem_of(reader: str, file: Path, trace: Path) -> tuple[str, str] | None:
    """Give a file to a reader; return the kind and the description of what is wrong with the reader.

    Args:
        reader: The format of the file.
        file: The file.
        trace: Folder of a valid trace, for the readers of one of its files.
    """
    try:
        complaint = _READERS[reader](file, trace)
    except BaseException as error:
        frames = traceback.extract_tb(error.__traceback__)
        here = next((frame for frame in reversed(frames) if "site-packages" not in frame.filename), frames[-1])
        kind = f"{reader}: {type(error).__name__} in {Path(here.filename).name}, {here.name}"
        return kind, "".join(traceback.format_exception(error))
    return None if complaint is None else (f"{reader}: {complaint.splitlines()[0]}", complaint)


def _command(*arguments: str | Path, statuses: tuple[int, ...] = (0, 2)) -> str | None:
    ended = CliRunner().invoke(application, [str(argument) for argument in arguments])
    if ended.exception is not None and not isinstance(ended.exception, SystemExit):
        raise ended.exception
    if ended.exit_code not in statuses:
        return f"exit status {ended.exit_code}\n{ended.output}"
    said = ended.stdout + ended.stderr
    if any(not (each.isprintable() or each in _LAYOUT) for each in said):
        return f"output that is not printable\n{said!r}"
    if len(said) > _MOST_CHARACTERS:
        return f"endless output\n{said[:1000]}"
    if ended.exit_code == 2 and not ended.stderr.strip():
        return "a refusal without a word"
    return None


def _scenario(file: Path, _: Path) -> str | None:
    return _command("check", file) or _grid(file)


def _grid(file: Path) -> None:
    """Read a scenario as a sweep does; what ``check`` accepts must be accepted or refused here too."""
    from experiments.scenarios.backend import Backend
    from policies.enforcement import Enforcement
    from workloads.loading import ScenarioError

    try:
        build_grid(read_files([file]), [{}, {"num_levels": 4}], (), [1], Backend.SIMULATOR, Enforcement.LEVELS)
    except ScenarioError:
        return


def _config(file: Path, _: Path) -> None:
    try:
        load_config(file)
    except ConfigError:
        return


def _tokens(file: Path, _: Path) -> None:
    try:
        ReloadingFiles((file,), parse_tokens)
    except UnusableFileError:
        return


def _topology(file: Path, _: Path) -> None:
    from workloads.loading import ScenarioError

    try:
        load_topology(file).build()
    except ScenarioError:
        return


def _trace_file(name: str) -> Callable[[Path, Path], str | None]:
    def read(file: Path, trace: Path) -> str | None:
        folder = file.parent / "trace"
        folder.mkdir(exist_ok=True)
        for each in trace.iterdir():
            (folder / each.name).write_bytes(each.read_bytes())
        (folder / name).write_bytes(file.read_bytes())
        return _command("trace", folder)

    return read


def _record(file: Path, _: Path) -> str | None:
    return _command("replay", file, statuses=(0, 1, 2))


def _results(file: Path, _: Path) -> None:
    from experiments.scenarios.backend import Backend
    from policies.enforcement import Enforcement

    (scenario,) = read_files([SHIPPED_SCENARIOS / "fig20.yaml"])
    grid = build_grid([scenario], [{}], ("crux",), [1], Backend.SIMULATOR, Enforcement.LEVELS)
    try:
        with open_output(file, [case.description for case in grid]) as output:
            missing_cases(grid, output)
            list(summarise(grid, output.lines))
    except OutputError:
        return


def _p4info(file: Path, _: Path) -> None:
    try:
        compiled_pipeline(read_text(file), PROGRAM.read_bytes())
    except (ValueError, RequestError):
        return


def _program(file: Path, _: Path) -> None:
    try:
        compiled_pipeline(P4INFO.read_text(), file.read_bytes())
        compile_program(read_text(file))
    except (ValueError, RequestError, UnsupportedError):
        return


_READERS: Mapping[str, Callable[[Path, Path], str | None]] = {
    "scenario": _scenario,
    "topology": _topology,
    "config": _config,
    "tokens": _tokens,
    "assumptions": lambda file, trace: _command("trace", trace, "--assumptions", file),
    "coflows": lambda file, _: _command("coflows", file, "--policy", "fair"),
    "job.csv": _trace_file("job.csv"),
    "worker.csv": _trace_file("worker.csv"),
    "topo.csv": _trace_file("topo.csv"),
    "record": _record,
    "results": _results,
    "p4info": _p4info,
    "program": _program,
    "openflow": lambda file, _: openflow.read(file.read_bytes()),
}
READERS = tuple(_READERS)
"""The formats."""
