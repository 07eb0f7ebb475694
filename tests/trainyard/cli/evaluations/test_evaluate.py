"""The command that is built from an evaluation's class."""

import json
import shlex
import subprocess
import sys
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import pytest

from experiments.papers.catalogue import EVALUATIONS, EvaluationEntry
from experiments.papers.evaluation import Argument, Evaluation, Option, require_positive
from experiments.report.findings import Findings, FindingsTable
from experiments.sweeps import processes
from tests.trainyard.cli.conftest import Trainyard, in_this_process
from trainyard.cli import evaluate as evaluate_module
from trainyard.cli.answers import Writer
from trainyard.cli.report_files import ReportFiles

NAMES = [entry.name for entry in EVALUATIONS]


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Squares(Evaluation[int, int, dict[int, int]]):
    """Squares of whole numbers, those of even and of odd ones together."""

    folder: Annotated[Path | None, Argument("FOLDER", "A folder.")] = None
    numbers: Annotated[int, Option("Numbers from 0 on.", minimum=1, maximum=9)] = 4
    load_to: Annotated[float, Option("A load.")] = 0.5
    colour: Annotated[tuple[Colour, ...], Option("A colour.")] = ()
    file: Annotated[Path | None, Option("A file.", metavar="FILE")] = None

    def __post_init__(self) -> None:
        require_positive("--load-to", self.load_to)

    def notices(self) -> Sequence[str]:
        return [repr(self)]

    def cases(self) -> Sequence[int]:
        return range(self.numbers)

    @staticmethod
    def measure(case: int) -> int:
        return case**2

    def group(self, case: int) -> Hashable:
        return case % 2

    def combine(self, cases: Sequence[int], results: Mapping[int, int]) -> dict[int, int]:
        return {case: results[case] for case in cases}

    def json_object(self, measured: dict[int, int]) -> dict[str, object]:
        return {"squares": measured}

    def summary_object(self, measured: Sequence[dict[int, int]]) -> dict[str, object]:
        return {"sum": sum(square for squares in measured for square in squares.values())}

    def findings(self, measured: Sequence[dict[int, int]]) -> Findings:
        rows = tuple((str(case), str(square)) for squares in measured for case, square in squares.items())
        return Findings("Squares", (FindingsTable("All", ("Number", "Square"), rows),), (), ("Numbers are whole.",))


@pytest.fixture
def squares(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes the place of ``churn``; its numbers stay in this process."""
    monkeypatch.setattr(EvaluationEntry, "load", lambda _: Squares)
    monkeypatch.setattr(processes, "on_processes", in_this_process)


@pytest.mark.usefixtures("squares")
def test_options_reach_the_evaluation(trainyard: Trainyard) -> None:
    ended = trainyard("evaluate", "churn")
    assert ended.stderr == "Squares(folder=None, numbers=4, load_to=0.5, colour=(), file=None)\n"
    options = ("--numbers", "2", "--load-to", "1.5", "--colour", "red", "--colour", "blue", "--colour", "red")
    ended = trainyard("evaluate", "churn", "here", *options, "--file", "there")
    assert ended.exit_code == 0
    assert ended.stderr == repr(Squares(Path("here"), 2, 1.5, (Colour.RED, Colour.BLUE), Path("there"))) + "\n"


@pytest.mark.usefixtures("squares")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--numbers", "0"), "--numbers"),
        (("--numbers", "10"), "--numbers"),
        (("--numbers", "many"), "--numbers"),
        (("--colour", "green"), "--colour"),
        (("--load-to", "inf"), "--load-to: expected a number above 0, got inf"),
        (("--workers", "0"), "--workers"),
        (("--none",), "--none"),
    ],
)
def test_bad_values_are_refused_by_name(trainyard: Trainyard, options: tuple[str, ...], words: str) -> None:
    ended = trainyard("evaluate", "churn", *options)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert words in ended.stderr


@pytest.mark.usefixtures("squares")
def test_groups_are_reported_in_the_order_of_the_cases(
    trainyard: Trainyard, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = trainyard("evaluate", "churn", "--json").stdout.splitlines()
    assert [json.loads(line) for line in whole] == [
        {"squares": {"0": 0, "2": 4}},
        {"squares": {"1": 1, "3": 9}},
        {"sum": 14},
    ]

    def backwards(work: Any, items: Sequence[Any], workers: int) -> Any:
        return in_this_process(work, items[::-1], workers)

    monkeypatch.setattr(processes, "on_processes", backwards)
    page = tmp_path / "new" / "page.html"
    assert trainyard("evaluate", "churn", "--json", "--report", page).stdout.splitlines() == whole
    assert "Numbers are whole." in page.read_text(encoding="utf-8")

    monkeypatch.setattr(processes, "on_processes", partial(in_this_process, most=3))
    ended = trainyard("evaluate", "churn", "--json")
    assert ended.exit_code == 130
    assert [json.loads(line) for line in ended.stdout.splitlines()] == [
        {"squares": {"0": 0, "2": 4}},
        {"squares": {"1": 1}},
        {"sum": 5},
    ]


@pytest.mark.usefixtures("squares")
def test_a_page_that_cannot_be_written_fails_after_the_tables(trainyard: Trainyard, tmp_path: Path) -> None:
    ended = trainyard("evaluate", "churn", "--report", tmp_path / "a" / ("x" * 300))
    assert ended.exit_code == 1
    assert "Squares" in ended.stdout
    assert "cannot be written" in ended.stderr


def test_help_lists_all_evaluations_without_importing_them() -> None:
    script = (
        "import sys; from typer.testing import CliRunner; from trainyard.cli.evaluate import evaluate;"
        "print(CliRunner().invoke(evaluate, ['--help']).stdout);"
        "print(sorted({'numpy', 'numba', 'scipy', 'pydantic', 'networkx'} & sys.modules.keys()))"
    )
    *shown, imported = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    assert imported == "[]"
    for entry in EVALUATIONS:
        assert any(f" {entry.name} " in line and entry.summary[:20] in line for line in shown)


OPTIONS: dict[str, tuple[str, dict[str, object]]] = {
    "crux-testbed": (
        "--mix fig20 --mix fig21 --seeds 3 --on emulator",
        {"mix": ("fig20", "fig21"), "seeds": 3, "on": "emulator"},
    ),
    "crux-microbench": (
        "--seeds 7 --load-to 1.2 --assume in-turn",
        {"seeds": 7, "load_to": 1.2, "assume": "in-turn"},
    ),
    "crux-trace": (
        "a --policy ecmp --policy crux --scheduler muri --days 0.5 --seed 4 --topology thin-clos --assumptions b",
        {"folder": Path("a"), "policy": ("ecmp", "crux"), "scheduler": ("muri",), "days": 0.5, "seed": 4}
        | {"topology": "thin-clos", "assumptions": Path("b")},
    ),
    "crux-trace-loads": (
        "a --load 1.5 --load 0.5 --policy crux --scheduler hived --days 2 --seeds 2 --topology clos --assumptions b",
        {"folder": Path("a"), "load": (1.5, 0.5), "policy": ("crux",), "scheduler": "hived", "days": 2.0, "seeds": 2}
        | {"topology": "clos", "assumptions": Path("b")},
    ),
    "crux-schedulers": (
        "a --days 0.5 --seed 4 --assumptions b",
        {"folder": Path("a"), "days": 0.5, "seed": 4, "assumptions": Path("b")},
    ),
    "trace-sensitivity": (
        "a --variant 'volumes x2' --scheduler affinity --days 0.5 --seed 4 --topology double-sided --assumptions b",
        {"folder": Path("a"), "variant": ("volumes x2",), "scheduler": "affinity", "days": 0.5, "seed": 4}
        | {"topology": "double-sided", "assumptions": Path("b")},
    ),
    "coflow": ("a --recompute coflow", {"file": Path("a"), "recompute": "coflow"}),
    "churn": ("--seeds 2 --jobs 7", {"seeds": 2, "jobs": 7}),
    "robustness": ("--mix fig22 --seeds 2", {"mix": ("fig22",), "seeds": 2}),
    "echelon": (
        "--kind tp --kind optimum --load 0.3 --seeds 2 --enforcement levels",
        {"kind": ("tp", "optimum"), "load": (0.3,), "seeds": 2, "enforcement": "levels"},
    ),
    "netsense": (
        "--task digits --task cifar-100 --data a --on emulator --steps 50 --folds 2 --bucket-mib 4 --mixes 3 --seed 2",
        {"task": ("digits", "cifar-100"), "data": Path("a"), "on": "emulator", "steps": 50, "folds": 2}
        | {"bucket_mib": 4, "mixes": 3, "seed": 2},
    ),
    "islands": (
        "--islands 16 --devices 64 --seeds 2 --policy ecmp --policy crux",
        {"islands": 16, "devices": 64, "seeds": 2, "policy": ("ecmp", "crux")},
    ),
}
"""Every option of every evaluation, and what it sets."""
BAD_OPTIONS = {
    "crux-testbed": ("--mix fig99", "--on paper", "--seeds 0"),
    "crux-microbench": ("--load-to 0.1", "--assume nothing"),
    "crux-trace": ("--policy none", "--scheduler none", "--days 0", "--seed -1", "--topology ring"),
    "crux-trace-loads": ("--load 0", "--days nan", "--seeds 0"),
    "crux-schedulers": ("--days -1", "--seed x"),
    "trace-sensitivity": ("--variant none", "--days inf"),
    "coflow": ("a --recompute never",),
    "churn": ("--jobs 10001", "--seeds 0"),
    "robustness": ("--mix fig99", "--seeds 0"),
    "echelon": ("--kind pp", "--load 1", "--enforcement none"),
    "netsense": (
        *("--task letters", "--steps 39", "--folds 6", "--bucket-mib 0", "--mixes -1", "--seed -1"),
        *("--on paper", "--on mininet", "--task cifar-100", "--data a --task digits"),
    ),
    "islands": ("--islands 12", "--devices 33", "--seeds 0", "--policy none"),
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Evaluation[Any, Any, Any]]:
    """The evaluations that would have run."""
    found: list[Evaluation[Any, Any, Any]] = []

    def keep(evaluation: Evaluation[Any, Any, Any], _workers: int | None, files: ReportFiles, writer: Writer) -> None:
        assert writer.is_for_people
        assert files == ReportFiles()
        found.append(evaluation)

    monkeypatch.setattr(evaluate_module, "_evaluate", keep)
    return found


@pytest.mark.parametrize("entry", EVALUATIONS, ids=NAMES)
def test_every_option_of_every_evaluation_reaches_it(
    entry: EvaluationEntry, trainyard: Trainyard, asked: list[Evaluation[Any, Any, Any]]
) -> None:
    evaluation: Any = entry.load()
    options, expected = OPTIONS[entry.name]
    assert set(expected) == {field.name for field in fields(evaluation)}
    assert trainyard("evaluate", entry.name, *shlex.split(options)).exit_code == 0
    assert trainyard("evaluate", entry.name, *(["a"] if entry.name == "coflow" else [])).exit_code == 0
    assert asked == [evaluation(**expected), evaluation(Path("a")) if entry.name == "coflow" else evaluation()]
    for name in expected:
        assert type(getattr(asked[0], name)) is type(getattr(asked[1], name)) or getattr(asked[1], name) is None


@pytest.mark.parametrize(("name", "option"), [(name, option) for name in NAMES for option in BAD_OPTIONS[name]])
def test_every_evaluation_refuses_bad_values_by_name(
    trainyard: Trainyard, asked: list[Evaluation[Any, Any, Any]], name: str, option: str
) -> None:
    ended = trainyard("evaluate", name, *option.split())
    assert (ended.exit_code, ended.stdout, asked) == (2, "", [])
    assert next(word for word in option.split() if word.startswith("--")) in ended.stderr


@pytest.mark.parametrize("entry", EVALUATIONS, ids=NAMES)
def test_help_of_an_evaluation_shows_its_options(entry: EvaluationEntry, trainyard: Trainyard) -> None:
    shown = trainyard("evaluate", entry.name, "--help").stdout
    options = [word for word in shlex.split(OPTIONS[entry.name][0]) if word.startswith("--")]
    for option in (*options, "--workers", "--output", "--report"):
        assert option in shown
