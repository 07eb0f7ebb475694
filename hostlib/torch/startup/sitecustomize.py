"""Attaches the host library to every Python process that makes a process group: ``python -m hostlib run``.

Python imports a module of this name when it starts, from the first place on its path that has one. The one that this
hides, if any, is run first.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

_OBSERVED, _MAKER = "torch", "_new_process_group_helper"


class _AttachingLoader(importlib.abc.Loader):
    """Loads PyTorch as its own loader does, and attaches when the first process group is made."""

    def __init__(self, plain: importlib.abc.Loader) -> None:
        self._plain = plain

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._plain.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._plain  # which has more than this one, such as the package's resources
        if module.__spec__ is not None:
            module.__spec__.loader = self._plain
        self._plain.exec_module(module)
        groups = sys.modules.get("torch.distributed.distributed_c10d")
        plain = getattr(groups, _MAKER, None)
        if plain is None:
            return  # this PyTorch has no process groups

        def make(*args: Any, **kwargs: Any) -> Any:
            setattr(groups, _MAKER, plain)
            _attach()
            return getattr(groups, _MAKER)(*args, **kwargs)

        setattr(groups, _MAKER, make)


class _AttachingFinder(importlib.abc.MetaPathFinder):
    """Finds one module as others would, whether it is then imported or only looked for."""

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != _OBSERVED:
            return None
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            sys.meta_path.insert(0, self)
        if spec is not None and spec.loader is not None:
            spec.loader = _AttachingLoader(spec.loader)
        return spec


def _attach() -> None:
    try:
        import hostlib.torch

        hostlib.torch.attach()
    except Exception as error:
        print(f"Trainyard cannot be attached, and the job runs without: {error}", file=sys.stderr)


def _run_hidden() -> None:
    """Run the next ``sitecustomize`` on the path."""
    here = Path(__file__).resolve().parent
    others = [folder for folder in sys.path if Path(folder or ".").resolve() != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


_run_hidden()
if os.environ.get("TRAINYARD_ATTACH"):
    sys.meta_path.insert(0, _AttachingFinder())
