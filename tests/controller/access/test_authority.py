"""The authority for trials is read back from its folder, or what is there is named."""

from pathlib import Path

import pytest

from controller.access.authority import Authority, AuthorityError
from controller.access.tls_files import check_tls


def test_an_authority_that_is_read_back_signs_on(tmp_path: Path) -> None:
    made = Authority.new(days=1)
    made.pair.write(tmp_path, "ca")
    server = Authority.read(tmp_path).server("controller", ["127.0.0.1", "controller.example.org"], days=1)
    check_tls(server.certificate, server.key, made.pair.certificate)
    assert (tmp_path / "ca.key").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("name", ["ca.pem", "ca.key"])
@pytest.mark.parametrize(
    ("place", "problem"),
    [
        (Path("/dev/zero"), "expected a regular file or a pipe"),
        (Path("absent"), "No such file"),
        (Path("torn"), "holds no authority"),
    ],
)
def test_what_is_no_authority_is_named_and_no_device_is_read(
    tmp_path: Path, name: str, place: Path, problem: str
) -> None:
    Authority.new(days=1).pair.write(tmp_path, "ca")
    (tmp_path / "torn").write_text("-----BEGIN CERTIFICATE-----\n")
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to(place)
    with pytest.raises(AuthorityError, match=problem) as refused:
        Authority.read(tmp_path)
    assert str(tmp_path) in str(refused.value)


def test_the_key_of_another_authority_is_refused(tmp_path: Path) -> None:
    for name in ("ca", "other"):
        Authority.new(days=1).pair.write(tmp_path, name)
    (tmp_path / "other.key").replace(tmp_path / "ca.key")
    with pytest.raises(AuthorityError, match="does not belong to its certificate"):
        Authority.read(tmp_path)
