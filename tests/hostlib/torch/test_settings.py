"""Settings come from arguments, else from the environment, else from the script and its scheduler."""

import sys
from collections.abc import Mapping

import pytest

from hostlib.credentials import Credentials
from hostlib.torch.settings import Settings, default_job

_EVERYTHING = {
    "TRAINYARD_CONTROLLER": "controller:4790",
    "TRAINYARD_JOB": "llama",
    "TRAINYARD_OWNER_TOKEN": "secret",
}


@pytest.fixture(autouse=True)
def script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/home/me/train.py", "--epochs", "3"])
    monkeypatch.delenv("TRAINYARD_TOKEN", raising=False)


def test_arguments_come_before_the_environment() -> None:
    credentials = Credentials(token="mine")
    found = Settings.found("localhost:1", "gpt", credentials, 7, environment=_EVERYTHING)
    assert found == Settings(("localhost:1",), "gpt", credentials, "secret", 7)


def test_the_environment_has_what_the_arguments_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINYARD_TOKEN", "theirs")
    found = Settings.found(environment=_EVERYTHING)
    assert found == Settings(("controller:4790",), "llama", Credentials(token="theirs"), "secret", 5)


def test_the_folder_of_recordings() -> None:
    environment = {"TRAINYARD_TRACE_FOLDER": "recorded"}
    assert Settings.found(environment=environment).trace_folder == "recorded"
    assert Settings.found(trace_folder="mine", environment=environment).trace_folder == "mine"
    assert Settings.found(environment={}).trace_folder is None


def test_an_address_that_is_none_is_named() -> None:
    with pytest.raises(ValueError, match=r"address: expected HOST:PORT .* got 'controller'"):
        Settings.found("localhost:1, controller", environment={})


def test_without_either_no_controller_is_named_and_the_job_is_the_script_s() -> None:
    assert Settings.found(environment={}) == Settings((), "train", Credentials())
    assert Settings.found(environment=dict.fromkeys(_EVERYTHING, "")) == Settings((), "train", Credentials())


def test_several_controllers_have_commas_between_them() -> None:
    found = Settings.found("one:1, two:2,,unix:/three ", environment={})
    assert found.controllers == ("one:1", "two:2", "unix:/three")


@pytest.mark.parametrize(
    ("environment", "job"),
    [
        ({"SLURM_JOB_ID": "17"}, "train-slurm-17"),
        ({"TORCHELASTIC_RUN_ID": "abc"}, "train-torchrun-abc"),
        ({"TORCHELASTIC_RUN_ID": "none"}, "train"),
        ({"TORCHELASTIC_RUN_ID": ""}, "train"),
        ({"SLURM_JOB_ID": "17", "TORCHELASTIC_RUN_ID": "abc"}, "train-slurm-17"),
        ({"SLURM_JOB_ID": "", "TORCHELASTIC_RUN_ID": "a/b"}, "train-torchrun-a-b"),
        ({"TORCHELASTIC_RUN_ID": "x" * 300}, f"train-torchrun-{'x' * 241}"),
    ],
)
def test_a_run_of_a_scheduler_has_its_id_in_the_job_s_name(environment: Mapping[str, str], job: str) -> None:
    assert default_job(environment) == job
    assert Settings.found(environment=environment).job == job


@pytest.mark.parametrize(("arguments", "job"), [([], "python"), ([""], "python"), (["-c"], "-c"), (["a.b.py"], "a.b")])
def test_a_session_without_a_script_has_a_name_too(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], job: str
) -> None:
    monkeypatch.setattr(sys, "argv", arguments)
    assert default_job({}) == job


@pytest.mark.parametrize("job", ["a/b", "x" * 257, "two\nlines"])
def test_a_name_that_no_controller_takes_is_refused(job: str) -> None:
    with pytest.raises(ValueError, match=r"^job: expected 1 to 256 printable characters"):
        Settings.found(job=job, environment={})
    with pytest.raises(ValueError, match=r"^job: "):
        Settings.found(environment={"TRAINYARD_JOB": job})


@pytest.mark.parametrize("iterations", [0, 1001, 2.5, "five"])
def test_a_profile_of_no_iterations_is_refused(iterations: int) -> None:
    with pytest.raises(ValueError, match=r"^profile_iterations: "):
        Settings.found(profile_iterations=iterations, environment={})


def test_credentials_that_contradict_each_other_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINYARD_TOKEN", "token")
    monkeypatch.setenv("TRAINYARD_TOKEN_FILE", "/token")
    with pytest.raises(ValueError, match=r"^token: token_file is given too"):
        Settings.found(environment={})
