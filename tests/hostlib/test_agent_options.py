"""Options of the agent's command that are refused before it sends anything."""

import os
from pathlib import Path

import pytest

from hostlib import agent
from tests.certificates import Authority

HOST = ["--host", "h0", "--nic", "lo=127.0.0.1@1"]


def test_credentials_that_cannot_be_used_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    authority, token = Authority(tmp_path), tmp_path / "token"
    token.write_text("secret")
    for options, problem in (
        (["--ca", str(tmp_path / "none")], f"{tmp_path / 'none'}: cannot be read"),
        (["--ca", str(authority.ca), "--key", str(token)], "certificate: missing, though key is given"),
        (["--token-file", str(token), "--controller", "far:4790"], "a token must not travel in plain text to far:4790"),
        (["--token-file", str(tmp_path / "none")], f"{tmp_path / 'none'}: cannot be read"),
    ):
        assert agent.main([*HOST, *options]) == 2
        said = capsys.readouterr().err
        assert problem in said
        assert "Traceback" not in said


def test_an_owner_token_that_is_none_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "token"
    file.write_bytes(b"\xff\n\0")
    assert agent.main([*HOST, "--owner-token-file", str(file)]) == 2
    assert capsys.readouterr().err.startswith(f"{file}: expected 1 to 256 printable characters")


def test_an_owner_token_is_read_from_no_device_and_no_pipe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for file in (pipe, Path("/dev/zero")):
        assert agent.main([*HOST, "--owner-token-file", str(file)]) == 2
        assert capsys.readouterr().err == f"{file}: not a regular file\n"


def test_controllers_come_from_the_environment_unless_options_name_some(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A token must not travel in plain text, so a refusal names the controller that it would have gone to.
    (tmp_path / "token").write_text("secret")
    options = [*HOST, "--token-file", str(tmp_path / "token")]
    monkeypatch.setenv("TRAINYARD_CONTROLLER", "localhost:4790, far:4790")
    assert agent.main(options) == 2
    assert "to far:4790" in capsys.readouterr().err
    assert agent.main([*options, "--controller", "farther:4790"]) == 2
    assert "to farther:4790" in capsys.readouterr().err


def test_a_controller_of_the_environment_that_is_no_address_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINYARD_CONTROLLER", "far")
    assert agent.main(HOST) == 2
    assert capsys.readouterr().err.startswith("TRAINYARD_CONTROLLER: address: expected HOST:PORT")
