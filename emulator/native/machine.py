"""From LLVM's text to machine code in memory, by way of a cache on disk.

The cache is ``~/.cache/trainyard``, or the folder in ``TRAINYARD_CACHE``. A file's name is a hash of all that its
machine code depends on: LLVM's text, LLVM's version and the processor. A stale one is therefore never used. A file
begins with a hash of the rest: one that is damaged is compiled anew. Files are written under a name of their own and
then renamed, so that several processes may share the cache.
"""

import hashlib
import logging
import os
import secrets
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm

_LOG = logging.getLogger(__name__)
_FORM = "1"  # of a file, and of how LLVM optimises
_HASH_BYTES = 32
_SPEED_LEVEL = 3


class MachineCode:
    """Loaded machine code; it stays in memory as long as this object."""

    def __init__(self, text: str) -> None:
        """Compile LLVM's text, or load what was compiled from it before."""
        machine = _machine()
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(_object(text)))
        self._engine.finalize_object()

    def address(self, symbol: str) -> int:
        """Return the address of a function."""
        return int(self._engine.get_function_address(symbol))


def folder() -> Path:
    """Return the folder of machine code."""
    return Path(os.environ.get("TRAINYARD_CACHE", Path.home() / ".cache" / "trainyard")) / "programs"


def _object(text: str) -> bytes:
    key = "\0".join((_FORM, llvmlite.__version__, ".".join(map(str, llvm.llvm_version_info)), *_processor(), text))
    path = folder() / f"{hashlib.sha256(key.encode()).hexdigest()}.o"
    found = _read(path)
    if found is None:
        found = _compiled(text)
        _write(path, found)
    return found


def _read(path: Path) -> bytes | None:
    try:
        content = path.read_bytes()
    except OSError:
        return None
    found = content[_HASH_BYTES:]
    if hashlib.sha256(found).digest() == content[:_HASH_BYTES]:
        return found
    _LOG.warning("%s is damaged; it is compiled anew", path)
    return None


def _write(path: Path, content: bytes) -> None:
    partial = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(hashlib.sha256(content).digest() + content)
        partial.replace(path)
    except OSError as error:
        _LOG.warning("machine code is not kept for the next time: %s", error)
        with suppress(OSError):
            partial.unlink()


def _compiled(text: str) -> bytes:
    machine = _machine()
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    module.verify()
    options = llvm.create_pipeline_tuning_options(_SPEED_LEVEL)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return bytes(machine.emit_object(module))


@cache
def _processor() -> tuple[str, str, str]:
    """Return what the machine code is for: the triple, the processor's name and its features."""
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def _machine() -> Any:
    """Return a new target machine; an engine takes its own with it when it ends."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    triple, name, features = _processor()
    target = llvm.Target.from_triple(triple)
    relocation = "static" if triple.startswith("x86") else "default"
    return target.create_target_machine(
        cpu=name, features=features, opt=_SPEED_LEVEL, reloc=relocation, codemodel="jitdefault", jit=True
    )
