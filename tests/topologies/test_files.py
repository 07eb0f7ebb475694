import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from topologies.files import FileError, read_bytes, read_lines, read_text


def _problem(path: Path, read: Callable[[Path], object] = read_text) -> str:
    with pytest.raises(FileError) as caught:
        read(path)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("é\n")
    assert read_text(path) == "é\n"


def test_devices_directories_and_sockets_are_refused_unopened(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        assert "expected a regular file or a pipe" in _problem(tmp_path / "socket")
    assert "expected a regular file or a pipe" in _problem(Path("/dev/zero"))
    assert "Is a directory" in _problem(tmp_path)
    assert "No such file" in _problem(tmp_path / "absent")
    assert "null" in _problem(Path("a\0b"))


def test_a_larger_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # it is sparse
    assert _problem(path) == f"{path}: is larger than 16,777,216 bytes"


@pytest.mark.parametrize("content", ["a\n".encode("utf-16"), b"\xed\xa0\x80", b"\xff\x00"])
def test_what_is_not_text_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "binary"
    path.write_bytes(content)
    assert _problem(path) == f"{path}: is not a text file"
    assert _problem(path, lambda path: list(read_lines(path))) == f"{path}: is not a text file"


def test_the_name_of_a_file_cannot_control_the_terminal(tmp_path: Path) -> None:
    assert _problem(tmp_path / "\x1b[31mred\n").endswith("/\\x1b[31mred\\n: cannot be read: No such file or directory")


def test_a_pipe_that_nobody_writes_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topologies.files.PATIENCE_S", 0.05)
    os.mkfifo(tmp_path / "fifo")
    assert "silent for 0.05 s" in _problem(tmp_path / "fifo")


def test_a_pipe_whose_writer_is_silent_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topologies.files.PATIENCE_S", 0.05)
    reading, writing = os.pipe()
    os.write(writing, b"a")
    try:
        assert "silent for 0.05 s" in _problem(Path(f"/dev/fd/{reading}"))
    finally:
        os.close(reading)
        os.close(writing)


def test_a_pipe_is_read_to_its_end_by_a_slow_writer(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)

    def write() -> None:
        with path.open("w") as file:
            for _ in range(3):
                file.write("line\n")
                file.flush()
                time.sleep(0.02)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert list(read_lines(path)) == ["line\n"] * 3
    finally:
        writer.join()


def test_a_pipe_whose_writer_has_left_has_ended() -> None:
    reading, writing = os.pipe()
    os.close(writing)
    try:
        assert read_bytes(Path(f"/dev/fd/{reading}")) == b""
    finally:
        os.close(reading)


def test_an_endless_pipe_is_read_up_to_the_bound() -> None:
    reading, writing = os.pipe()
    try:
        os.write(writing, bytes(17))
        assert "larger than 16 bytes" in _problem(Path(f"/dev/fd/{reading}"), lambda path: read_bytes(path, 16))
    finally:
        os.close(reading)
        os.close(writing)


def test_an_endless_line_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topologies.files.MOST_LINE_CHARACTERS", 8)
    path = tmp_path / "lines"
    path.write_text("1234567\n123456789\n")
    assert _problem(path, lambda path: list(read_lines(path))) == f"{path}: line 2: is longer than 8 characters"


def test_lines_keep_their_endings(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"\xef\xbb\xbfa\r\nb\nc")
    assert list(read_lines(path)) == ["a\r\n", "b\n", "c"]
