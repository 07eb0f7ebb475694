"""``trainyard certificates`` and ``trainyard token``: what they print is what the controller's files take."""

from pathlib import Path

import pytest
import yaml

from controller.access.identity import Role
from controller.access.tls_files import ServerTls
from controller.access.tokens import parse_tokens, token_hash
from tests.trainyard.cli.conftest import Trainyard


@pytest.mark.parametrize("name", ["credentials", "cr 4, x: {y}", "\x1b[31mred"])
def test_the_line_of_certificates_is_a_key_of_the_configuration(
    trainyard: Trainyard, tmp_path: Path, name: str
) -> None:
    made = trainyard("certificates", tmp_path / name, "--address", "controller.example.org", "--job", "vision")
    assert made.exit_code == 0
    said, line = made.stdout.splitlines()
    assert said.startswith("# wrote controller, job-vision to ")
    assert made.stdout.replace("\n", "").isprintable()
    tls = ServerTls.model_validate(yaml.safe_load(line)["tls"])
    assert tls.certificate == tmp_path / name / "controller.pem"


def test_what_is_there_already_is_kept(trainyard: Trainyard, tmp_path: Path) -> None:
    trainyard("certificates", tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    made = trainyard("certificates", tmp_path)
    assert made.stdout.startswith(f"# wrote nothing to {tmp_path};")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--address", "a b"), "'a b': neither an IP address nor a host name"),
        (("--job", "a/b"), "the name must be printable text without a slash"),
        (("--agent", "h" * 65), "names in certificates have 1 to 64 characters"),
    ],
)
def test_nobody_gets_a_certificate_that_means_nothing(
    trainyard: Trainyard, tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    refused = trainyard("certificates", tmp_path, *options)
    assert refused.exit_code == 2
    assert said in refused.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_line_of_a_token_is_one_of_the_file_of_tokens(trainyard: Trainyard) -> None:
    made = trainyard("token", "--name", "nightly", "--role", "job", "--tenant", "vision", "--days", "90")
    assert made.exit_code == 0
    token = made.stderr.strip()
    assert token not in made.stdout
    known = parse_tokens(made.stdout.encode())[token_hash(token)]
    assert (known.identity.name, known.identity.roles, known.identity.tenant) == (
        "nightly",
        frozenset({Role.JOB}),
        "vision",
    )
    assert known.expires_s is not None


def test_a_token_of_nobody_is_refused(trainyard: Trainyard) -> None:
    for options, said in (
        (("--role", "job"), "a job needs a tenant"),
        (("--role", "agent", "--tenant", "vision"), "the role agent has no tenant"),
    ):
        refused = trainyard("token", "--name", "a", *options)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert refused.stderr == f"{said}\n"
