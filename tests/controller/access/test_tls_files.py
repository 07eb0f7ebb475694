"""Files for TLS are checked before anything is served with them, and named where they cannot be used."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from controller.access.tls_files import TlsFiles
from tests.certificates import Authority


def test_files_that_fit_are_accepted(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    own = authority.issue("controller")
    files = TlsFiles(ca=authority.ca, certificate=own.certificate, key=own.key)
    assert files.key == own.key


@pytest.mark.parametrize("field", ["ca", "certificate", "key"])
def test_a_file_that_is_absent_or_torn_is_named_with_its_field(tmp_path: Path, field: str) -> None:
    authority = Authority(tmp_path)
    own = authority.issue("controller")
    files = {"ca": authority.ca, "certificate": own.certificate, "key": own.key}
    torn = tmp_path / "torn"
    torn.write_text("-----BEGIN CERTIFICATE-----\n")
    others = ((tmp_path / "absent", "No such file"), (tmp_path, "Is a directory"), (Path("/dev/zero"), "regular file"))
    for path, problem in ((torn, "PEM"), *others):
        with pytest.raises(ValidationError, match=rf"{field}: {path}: .*{problem}"):
            TlsFiles.model_validate(files | {field: path})


def test_the_key_of_another_certificate_is_refused(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    own, other = authority.issue("controller"), authority.issue("other")
    with pytest.raises(ValidationError, match=rf"key: {other.key}: is not the key of the certificate"):
        TlsFiles(ca=authority.ca, certificate=own.certificate, key=other.key)


def test_all_three_are_required(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="key"):
        TlsFiles.model_validate({"ca": tmp_path, "certificate": tmp_path})
