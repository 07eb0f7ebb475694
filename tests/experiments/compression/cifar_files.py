"""Writes small files as CIFAR-100 is published: pickles of protocol 2 as Python 2 and its numpy write them."""

import io
import pickle
import struct
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

FOLDER = "cifar-100-python"


class Python2Pickler(pickle._Pickler):
    """Writes bytes and text as Python 2's strings, and arrays under the names that numpy had then."""

    dispatch: ClassVar[dict[type, Any]] = dict(pickle._Pickler.dispatch)

    def _save_string(self, value: bytes | str) -> None:
        octets = value.encode("ascii") if isinstance(value, str) else value
        if len(octets) < 256:
            self.write(pickle.SHORT_BINSTRING + bytes([len(octets)]) + octets)
        else:
            self.write(pickle.BINSTRING + struct.pack("<i", len(octets)) + octets)
        self.memoize(value)

    def _save_bool(self, value: bool) -> None:
        """Python 2's numpy wrote the flags of a dtype as integers."""
        self.save(int(value))

    dispatch[bytes] = _save_string
    dispatch[str] = _save_string
    dispatch[bool] = _save_bool


def dumped(value: object) -> bytes:
    """Return a pickle as Python 2 writes it."""
    file = io.BytesIO()
    Python2Pickler(file, protocol=2).dump(value)
    return file.getvalue().replace(b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n")


def part(images: npt.NDArray[np.uint8], labels: list[int], name: str) -> dict[bytes, Any]:
    """Return ``train`` or ``test`` of images of 3 x 32 x 32."""
    return {
        b"filenames": [b"image_s_%06d.png" % number for number in range(len(images))],
        b"batch_label": b"%s batch 1 of 1" % name.encode(),
        b"fine_labels": labels,
        b"coarse_labels": [label // 5 for label in labels],
        b"data": images.reshape(len(images), -1),
    }


def meta() -> dict[bytes, Any]:
    """Return the names of labels."""
    return {
        b"fine_label_names": [b"fine %d" % number for number in range(100)],
        b"coarse_label_names": [b"coarse %d" % number for number in range(20)],
    }


def contents(train: int, test: int, classes: int = 100) -> dict[str, bytes]:
    """Return the three files, with so many images; those of a class are alike, so a model can learn them."""
    random = np.random.default_rng(1)
    means = random.integers(0, 256, (100, 3, 32, 32))
    files = {"meta": dumped(meta())}
    for name, count in (("train", train), ("test", test)):
        labels = random.permutation(np.arange(count) % classes)
        noise = random.integers(-20, 21, (count, 3, 32, 32))
        images = np.clip(means[labels] + noise, 0, 255).astype(np.uint8)
        files[name] = dumped(part(images, labels.tolist(), name))
    return files


def write_folder(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write files into a folder of the published name, and return it."""
    found = folder / FOLDER
    found.mkdir()
    for name, content in files.items():
        (found / name).write_bytes(content)
    return found


def write_archive(path: Path, files: Mapping[str, bytes]) -> Path:
    """Write files into an archive as the published one, and return its path."""
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"{FOLDER}/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path
