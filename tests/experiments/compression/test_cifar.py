"""CIFAR-100 as it is published is read; anything else is refused by name, and runs nothing."""

import os
import pickle
import tarfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from experiments.compression.cifar import DataError, read_cifar_100
from experiments.compression.measuring import trained
from experiments.compression.outcomes import JobName, TrainingCase
from experiments.compression.tasks import FOLDS, task_named
from tests.experiments.compression.cifar_files import contents, dumped, meta, part, write_archive, write_folder

IMAGES = np.arange(4 * 3 * 32 * 32, dtype=np.uint32).astype(np.uint8).reshape(4, 3, 32, 32)
TRAIN = part(IMAGES[:3], [7, 99, 0], "train")
TEST = part(IMAGES[3:], [42], "test")
FILES = {"meta": dumped(meta()), "train": dumped(TRAIN), "test": dumped(TEST)}


@pytest.mark.parametrize("write", [write_folder, lambda path, files: write_archive(path / "a.tar.gz", files)])
def test_folder_and_archive_have_the_images_of_both_parts(
    write: Callable[[Path, dict[str, bytes]], Path], tmp_path: Path
) -> None:
    found = read_cifar_100(write(tmp_path, FILES))
    np.testing.assert_array_equal(found.images, IMAGES)
    assert found.classes.tolist() == [7, 99, 0, 42]


def test_the_files_are_as_python_2_writes_them() -> None:
    """Not as Python 3 does, which has no strings of bytes in this protocol, and as numpy named its modules then."""
    assert FILES["train"].startswith(b"\x80\x02}")
    assert b"U\x04data" in FILES["train"]
    assert b"cnumpy.core.multiarray\n_reconstruct\n" in FILES["train"]


def test_a_file_that_numpy_2_has_written_again_is_read(tmp_path: Path) -> None:
    files = {name: pickle.dumps(value, 4) for name, value in {"meta": meta(), "train": TRAIN, "test": TEST}.items()}
    assert b"numpy._core.multiarray" in files["train"]
    np.testing.assert_array_equal(read_cifar_100(write_folder(tmp_path, files)).images, IMAGES)


class _Touch:
    """Its pickle makes a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch {self._path}",)


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_that_calls_something_else_is_refused_by_name(tmp_path: Path, protocol: int) -> None:
    made = tmp_path / "made"
    folder = write_folder(tmp_path, FILES | {"test": pickle.dumps(TEST | {b"batch_label": _Touch(made)}, protocol)})
    with pytest.raises(DataError, match=r"test: no pickle of CIFAR-100: it names '\w+' '(system|encode)', which is re"):
        read_cifar_100(folder)
    assert not made.exists()


def _without(key: bytes) -> dict[bytes, Any]:
    return {each: value for each, value in TRAIN.items() if each != key}


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("train", b"", "train: no pickle of CIFAR-100"),
        ("train", FILES["train"][:-200], "train: no pickle of CIFAR-100"),
        ("train", dumped([1, 2]), "train: expected a dictionary, found list"),
        (
            "train",
            dumped(_without(b"fine_labels") | {b"labels": [1, 2, 3]}),
            "train: expected fine_labels, which CIFAR",
        ),
        ("train", dumped(_without(b"data")), "train: expected data, which CIFAR"),
        ("train", dumped(_without(b"batch_label")), "train: expected batch_label"),
        ("train", dumped(TRAIN | {b"data": TRAIN[b"data"][:, :-1]}), "train: expected rows of 3072 uint8 as data"),
        ("train", dumped(TRAIN | {b"data": TRAIN[b"data"].astype(np.int16)}), "train: expected rows of 3072 uint8"),
        ("train", dumped(TRAIN | {b"data": TRAIN[b"data"][:0]}), "train: expected rows of 3072 uint8"),
        ("train", dumped(TRAIN | {b"data": np.array(0, np.uint8)}), "train: expected rows of 3072 uint8"),
        ("train", dumped(TRAIN | {b"fine_labels": [1, 2]}), "train: expected 3 of int as fine_labels"),
        ("train", dumped(TRAIN | {b"fine_labels": [1, 2, b"3"]}), "train: expected 3 of int as fine_labels"),
        ("train", dumped(TRAIN | {b"fine_labels": [1, 2, 100]}), "train: expected 0 to 99 as fine_labels"),
        ("test", dumped(TEST | {b"coarse_labels": [20]}), "test: expected 0 to 19 as coarse_labels"),
        ("test", dumped(TEST | {b"filenames": []}), "test: expected 1 of bytes as filenames"),
        ("meta", dumped({b"label_names": [b"cat"]}), "meta: expected fine_label_names"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    with pytest.raises(DataError, match=words) as raised:
        read_cifar_100(write_folder(tmp_path, FILES | {name: content}))
    assert "\n" not in str(raised.value)


def test_a_path_that_is_neither_is_named(tmp_path: Path) -> None:
    empty, missing, text = tmp_path / "empty", tmp_path / "missing", tmp_path / "a.txt"
    empty.mkdir()
    text.write_text("images\n")
    partial = write_archive(tmp_path / "partial.tar.gz", {"meta": FILES["meta"]})
    whole = write_archive(tmp_path / "whole.tar.gz", FILES)
    cut = tmp_path / "cut.tar.gz"
    cut.write_bytes(whole.read_bytes()[:500])
    folder = _archive_of(tmp_path / "folder.tar.gz", tarfile.DIRTYPE)
    loop = _archive_of(tmp_path / "loop.tar.gz", tarfile.SYMTYPE)
    for path, words in (
        (empty, "empty/meta: is not there"),
        (missing, "missing: is not there"),
        (text, "a.txt: neither a folder cifar-100-python nor its .tar.gz: not a gzip file"),
        (partial, "partial.tar.gz: .*cifar-100-python/train"),
        (cut, "cut.tar.gz: neither a folder"),
        (folder, "folder.tar.gz: cifar-100-python/meta is no file"),
        (loop, "loop.tar.gz: "),
    ):
        with pytest.raises(DataError, match=words):
            read_cifar_100(path)


def _archive_of(path: Path, kind: bytes) -> Path:
    """Write an archive whose meta is a folder, or a link to itself."""
    with tarfile.open(path, "w:gz") as archive:
        entry = tarfile.TarInfo("cifar-100-python/meta")
        entry.type, entry.linkname = kind, "meta"
        archive.addfile(entry)
    return path


@pytest.fixture(scope="module")
def changing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("changing"), FILES)


@given(
    name=st.sampled_from(["meta", "train"]),
    changes=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_changed_bytes_are_read_or_refused(changing: Path, name: str, changes: list[tuple[int, int]]) -> None:
    content = bytearray(FILES[name])
    for place, value in changes:
        content[place] = value
    (changing / name).write_bytes(content)
    with suppress(DataError):
        assert read_cifar_100(changing).images.shape[1:] == (3, 32, 32)
    (changing / name).write_bytes(FILES[name])


@pytest.mark.slow
def test_folds_test_all_images_once_and_a_model_learns_them(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, contents(train=400, test=100, classes=10))
    examples = task_named("cifar-100", folder).examples()
    assert torch.bincount(examples.folds).tolist() == [100] * FOLDS
    steps = 40
    job = JobName("ResNet18", 0.25, "GPU")
    for method, rate_mbps in (("AllReduce", None), ("budget", 200.0)):
        curve = trained(TrainingCase("cifar-100", method, rate_mbps, 0, steps, job, data=folder))
        assert (curve.steps[-1], curve.tested) == (steps, 100)
        assert curve.correct[-1] > 50 > curve.correct[0]
