import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.sweeps.output import OutputError, open_output
from tests.experiments.sweeps.builders import asked, failed, finished

LINES = [finished(asked(seed=seed), seed / 10) for seed in (1, 2, 3)]
CONTENT = "".join(f"{line.model_dump_json()}\n" for line in LINES)


def test_an_output_keeps_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "new" / "out.jsonl"
    with open_output(path, []) as output:
        assert not output.lines
        for line in LINES:
            output.add(line)
    assert path.read_text() == CONTENT
    with open_output(path, []) as output:
        assert output.lines == {line.key: line for line in LINES}
        assert not output.cut_off
    assert LINES[0].result is not None
    assert LINES[0].result.model_extra == {"more": "unnamed"}


@given(st.integers(0, len(CONTENT)))
def test_an_incomplete_last_line_is_dropped_and_written_again(length: int) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "out.jsonl"
        path.write_text(CONTENT[:length])
        whole = CONTENT[:length].count("\n")
        with open_output(path, []) as output:
            assert list(output.lines.values()) == LINES[:whole]
            assert output.cut_off == (length > 0 and CONTENT[length - 1] != "\n")
            for line in LINES[whole:]:
                output.add(line)
        assert path.read_text() == CONTENT


def test_the_newest_line_of_a_run_counts(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with open_output(path, []) as output:
        output.add(failed(asked()))
        output.add(finished(asked()))
    with open_output(path, []) as output:
        assert output.lines == {asked().key: finished(asked())}


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ("my notes", "line 1"),
        ("my notes\n", "line 1"),
        (CONTENT + "my notes", "line 4"),
        (CONTENT + '{"scenario": 1}\n' + CONTENT, "line 4: not a result of a sweep: scenario"),
        (
            CONTENT.replace('"error":null', '"error":"both"', 1),
            "line 1: not a result of a sweep: Value error, expected",
        ),
    ],
)
def test_other_files_are_refused_and_unchanged(tmp_path: Path, content: str, place: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(content)
    with pytest.raises(OutputError, match=rf"notes.txt: {place}"), open_output(path, []):
        pass
    assert path.read_text() == content


@pytest.mark.parametrize(
    "now", [asked(sha256="1"), asked("renamed", sha256="1").model_copy(update={"file": "small.yaml"})]
)
def test_a_changed_scenario_is_named(tmp_path: Path, now: object) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(CONTENT)
    with (
        pytest.raises(OutputError, match=r"^small.yaml: has changed since its runs in .*out.jsonl"),
        open_output(path, [now]),
    ):  # type: ignore[list-item]
        pass
    with open_output(path, [asked("other", sha256="1"), asked(seed=9)]):
        pass
    assert path.read_text() == CONTENT


def test_two_sweeps_do_not_share_an_output(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with open_output(path, []), pytest.raises(OutputError, match="another sweep"), open_output(path, []):
        pass
    with open_output(path, []):
        pass


def test_a_line_counts_once_written_even_if_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, (line, *_) = tmp_path / "out.jsonl", LINES

    def end(error: BaseException) -> None:
        raise error

    with open_output(path, []) as output:
        monkeypatch.setattr(os, "fsync", lambda _: end(OSError(28, "No space left on device")))
        with pytest.raises(OutputError, match="No space left"):
            output.add(line)
        assert not output.lines
        monkeypatch.setattr(os, "fsync", lambda _: end(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            output.add(line)
        assert output.lines == {line.key: line}


def test_an_impossible_output_path_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "file" / "out.jsonl"):
        with pytest.raises(OutputError, match=f"{path}: cannot be written"), open_output(path, []):
            pass
