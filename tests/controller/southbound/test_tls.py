"""Files for TLS with switches are read anew for every connection, and never from a device."""

from pathlib import Path

import pytest

from controller.access.tls_files import TlsFiles
from controller.southbound.tls import open_channel
from tests.certificates import Authority
from topologies.files import FileError


def test_a_device_that_has_taken_the_place_of_a_file_is_refused_unread(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    own = authority.issue("controller")
    files = TlsFiles(ca=authority.ca, certificate=own.certificate, key=own.key)
    own.key.unlink()
    own.key.symlink_to("/dev/zero")
    with pytest.raises(FileError, match=rf"{own.key}: cannot be read: expected a regular file or a pipe"):
        open_channel("127.0.0.1:1", files, ())
