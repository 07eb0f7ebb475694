"""NumPy arrays whose data lie in an arena, so that other processes may read them where they are.

NumPy asks a handler for the memory of arrays, and lets others set one (NEP 49, ``PyDataMem_SetHandler``). That is a
function of its C API; ctypes calls it, and is called by it.
"""

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from runtime.transport.arena import Arena

Array = np.ndarray[Any, Any]

LEAST_BYTES = 1 << 17
"""Smaller arrays do not lie in arenas: to copy them takes no longer than to say where they lie."""

_SET_HANDLER = 304
"""The place of PyDataMem_SetHandler in NumPy's table of its C API, which never changes."""
_VERSION = 1
_ADDRESS, _SIZE = ctypes.c_void_p, ctypes.c_size_t
_Malloc = ctypes.CFUNCTYPE(_ADDRESS, _ADDRESS, _SIZE)
_Calloc = ctypes.CFUNCTYPE(_ADDRESS, _ADDRESS, _SIZE, _SIZE)
_Realloc = ctypes.CFUNCTYPE(_ADDRESS, _ADDRESS, _ADDRESS, _SIZE)
_Free = ctypes.CFUNCTYPE(None, _ADDRESS, _ADDRESS, _SIZE)


class _Handler(ctypes.Structure):
    """``PyDataMem_Handler``."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", _ADDRESS),
        ("malloc", _Malloc),
        ("calloc", _Calloc),
        ("realloc", _Realloc),
        ("free", _Free),
    )


_capsule_pointer = ctypes.PYFUNCTYPE(_ADDRESS, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, _ADDRESS, ctypes.c_char_p, _ADDRESS)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_api = import_module("numpy._core._multiarray_umath")._ARRAY_API
_table = ctypes.cast(_capsule_pointer(_api, None), ctypes.POINTER(_ADDRESS))
_set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(_table[_SET_HANDLER])
_c = ctypes.CDLL(None)
_malloc = ctypes.CFUNCTYPE(_ADDRESS, _SIZE)(("malloc", _c))
_calloc = ctypes.CFUNCTYPE(_ADDRESS, _SIZE, _SIZE)(("calloc", _c))
_realloc = ctypes.CFUNCTYPE(_ADDRESS, _ADDRESS, _SIZE)(("realloc", _c))
_free = ctypes.CFUNCTYPE(None, _ADDRESS)(("free", _c))

_handlers: list["ArenaArrays"] = []
"""NumPy calls them as long as arrays of theirs live, so they stay."""


class ArenaArrays:
    """Makes arrays in an arena. Where it has no room they lie elsewhere, as other arrays do. Any thread may use it."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self._begin = arena.address
        self._end = self._begin + len(arena.segment.view)
        self._handler = _Handler(
            b"trainyard_arena",
            _VERSION,
            None,
            _Malloc(lambda _, size: self._allocate(size)),
            _Calloc(lambda _, number, size: self._allocate_zeros(number * size)),
            _Realloc(lambda _, address, size: self._reallocate(address, size)),
            _Free(lambda _, address, __: self._release(address)),
        )
        self._capsule = _new_capsule(ctypes.addressof(self._handler), b"mem_handler", None)
        _handlers.append(self)

    @contextmanager
    def used(self) -> Iterator[None]:
        """Let NumPy place the large arrays that it makes meanwhile, in this thread, in the arena."""
        before = _set_handler(self._capsule)
        try:
            yield
        finally:
            _set_handler(before)

    def empty(self, shape: Sequence[int], dtype: str | np.dtype[Any]) -> Array:
        """Return an array of arbitrary content."""
        made = np.dtype(dtype)
        if int(np.prod(shape)) * made.itemsize < LEAST_BYTES:
            return np.empty(shape, made)
        with self.used():
            return np.empty(shape, made)

    def room(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Array | None:
        """Return an array of arbitrary content that lies in the arena, in a row; None if it has no room."""
        with self.used():
            made = np.empty(shape, dtype)
        return None if self.offset_bytes(made) is None else made

    def offset_bytes(self, array: Array) -> int | None:
        """Return where the first element lies; None if that is not in the arena."""
        address: int = array.__array_interface__["data"][0]
        return address - self._begin if self._begin <= address < self._end else None

    def _allocate(self, size_bytes: int) -> int | None:
        offset_bytes = self.arena.allocate(size_bytes) if size_bytes >= LEAST_BYTES else None
        if offset_bytes is not None:
            return self._begin + offset_bytes
        address: int | None = _malloc(size_bytes)
        return address

    def _allocate_zeros(self, size_bytes: int) -> int | None:
        offset_bytes = self.arena.allocate_zeros(size_bytes) if size_bytes >= LEAST_BYTES else None
        if offset_bytes is not None:
            return self._begin + offset_bytes
        address: int | None = _calloc(1, size_bytes)
        return address

    def _reallocate(self, address: int | None, size_bytes: int) -> int | None:
        if address is None or not self._begin <= address < self._end:
            elsewhere: int | None = _realloc(address, size_bytes)
            return elsewhere
        moved = self._allocate(size_bytes)
        if moved is not None:
            ctypes.memmove(moved, address, min(size_bytes, self.arena.size_bytes(address - self._begin)))
            self._release(address)
        return moved

    def _release(self, address: int | None) -> None:
        if address is not None and self._begin <= address < self._end:
            self.arena.free(address - self._begin)
        else:
            _free(address)
