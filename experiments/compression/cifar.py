"""Reads CIFAR-100 in its published "python version" (Krizhevsky 2009), from its folder or from its ``.tar.gz``.

The folder ``cifar-100-python`` has three pickles that Python 2 wrote. ``train`` and ``test`` are dictionaries of
``data`` (uint8, a row of 3,072 for each image: red, green, then blue, each 32 rows of 32), ``fine_labels``,
``coarse_labels``, ``filenames`` and ``batch_label``; ``meta`` has the names of both kinds of labels. Keys are bytes.

A pickle can call any function that it names. Here it can name those that rebuild an array, and nothing else; what it
calls then is of this module, for NumPy trusts what it rebuilds.
"""

import pickle  # nosec B403 # only by an unpickler that allows four names
import tarfile
import zlib
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

FOLDER = "cifar-100-python"
CLASSES = 100
COARSE_CLASSES = 20
SHAPE = (3, 32, 32)
_ROW_BYTES = 3 * 32 * 32
_CORRUPT = (
    ArithmeticError,
    AttributeError,
    EOFError,
    ImportError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
    pickle.UnpicklingError,
)
"""What unpickling something else raises."""


class DataError(ValueError):
    """What was to be CIFAR-100 is something else; the message names it, and says what."""


@dataclass(frozen=True, eq=False, slots=True)
class Cifar100:
    """Images with their classes, first those of ``train``, then those of ``test``.

    Attributes:
        images: Bytes, shape (images, 3, 32, 32).
        classes: The fine labels, 0 to 99.
    """

    images: npt.NDArray[np.uint8]
    classes: npt.NDArray[np.int64]


def read_cifar_100(path: Path) -> Cifar100:
    """Read the folder, or the archive. Raises DataError where it is something else."""
    contents = _contents(path)
    _check_names(_Content(path, "meta", contents["meta"]))
    parts = [_images(_Content(path, name, contents[name])) for name in ("train", "test")]
    return Cifar100(np.concatenate([images for images, _ in parts]), np.concatenate([classes for _, classes in parts]))


def _contents(path: Path) -> dict[str, bytes]:
    names = ("meta", "train", "test")
    try:
        if path.is_dir():
            return {name: (path / name).read_bytes() for name in names}
        with tarfile.open(path, "r:gz") as archive:
            return {name: _member(archive, f"{FOLDER}/{name}") for name in names}
    except FileNotFoundError as error:
        raise DataError(f"{error.filename}: is not there") from error
    except KeyError as error:
        raise DataError(f"{path}: {error.args[0]}") from error
    except (EOFError, OSError, RecursionError, tarfile.TarError, zlib.error) as error:
        raise DataError(f"{path}: neither a folder {FOLDER} nor its .tar.gz: {error}") from error


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    if file is None:
        raise KeyError(f"{name} is no file")
    return file.read()


class _Content:
    """One of the files, a dictionary."""

    def __init__(self, path: Path, name: str, content: bytes) -> None:
        self._name = f"{path}: {name}"
        try:
            found = _Unpickler(BytesIO(content), encoding="bytes").load()
        except _CORRUPT as error:
            raise self.wrong(f"no pickle of CIFAR-100: {error}") from error
        if not isinstance(found, dict):
            raise self.wrong(f"expected a dictionary, found {type(found).__name__}")
        self._found = found

    def wrong(self, words: str) -> DataError:
        """Return the error that says this of the file."""
        return DataError(f"{self._name}: {words}")

    def entry(self, key: str) -> Any:
        """Return what the dictionary has under a key. Raises DataError where it lacks it."""
        if key.encode() not in self._found:
            raise self.wrong(f"expected {key}, which CIFAR-100 has")
        return self._found[key.encode()]

    def list_of(self, key: str, kind: type, length: int) -> list[Any]:
        """Return a list of so many of a kind. Raises DataError."""
        found = self.entry(key)
        if not isinstance(found, list) or len(found) != length or not all(type(each) is kind for each in found):
            raise self.wrong(f"expected {length} of {kind.__name__} as {key}")
        return found

    def labels(self, key: str, length: int, classes: int) -> list[int]:
        """Return so many labels. Raises DataError."""
        found: list[int] = self.list_of(key, int, length)
        if not all(0 <= label < classes for label in found):
            raise self.wrong(f"expected 0 to {classes - 1} as {key}")
        return found


class _Dtype:
    """Stands for ``numpy.dtype``."""

    def __init__(self, code: object, *_: object) -> None:
        self.is_uint8 = code in ("u1", b"u1")

    def __setstate__(self, state: object) -> None:
        """Take byte order, alignment and the like, which bytes do not have."""


class _Array:
    """Stands for ``numpy.ndarray``. ``values`` is None where it is not of bytes."""

    values: npt.NDArray[np.uint8] | None = None

    def __init__(self, *_: object) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        _version, shape, dtype, is_fortran, data = state
        if isinstance(dtype, _Dtype) and dtype.is_uint8 and isinstance(data, bytes):
            self.values = np.frombuffer(data, np.uint8).reshape(shape, order="F" if is_fortran else "C")


_ALLOWED = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,  # of numpy 2
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"it names {module!a} {name!a}, which is refused") from None


def _check_names(meta: _Content) -> None:
    meta.list_of("fine_label_names", bytes, CLASSES)
    meta.list_of("coarse_label_names", bytes, COARSE_CLASSES)


def _images(content: _Content) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return images and fine labels of one of the two parts. Raises DataError."""
    found = content.entry("data")
    data = found.values if isinstance(found, _Array) else None
    if data is None or data.ndim != 2 or data.shape[1] != _ROW_BYTES or not len(data):
        raise content.wrong(f"expected rows of {_ROW_BYTES} uint8 as data")
    content.labels("coarse_labels", len(data), COARSE_CLASSES)
    content.list_of("filenames", bytes, len(data))
    content.entry("batch_label")
    return data.reshape(-1, *SHAPE), np.array(content.labels("fine_labels", len(data), CLASSES), dtype=np.int64)
