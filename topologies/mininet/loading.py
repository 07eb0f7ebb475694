"""Loads Debian's Mininet into Trainyard's environment, without its other packages."""

import importlib
import importlib.util
import shutil
import sys
import warnings
from pathlib import Path

from topologies.namespaces.host_network import NetworkError

_PLACE = Path("/usr/lib/python3/dist-packages/mininet")


def load_mininet() -> None:
    """Make ``mininet`` importable. Raises NetworkError where it is not installed, or does not suit this Python."""
    if "mininet" in sys.modules:
        return
    if shutil.which("mnexec") is None or not (_PLACE / "__init__.py").is_file():
        raise NetworkError("Mininet is not found: apt-get install mininet (that of PyPI lacks mnexec)")
    spec = importlib.util.spec_from_file_location(
        "mininet", _PLACE / "__init__.py", submodule_search_locations=[str(_PLACE)]
    )
    assert spec is not None
    sys.modules["mininet"] = importlib.util.module_from_spec(spec)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            importlib.import_module("mininet.net")
    except ImportError as error:
        del sys.modules["mininet"]
        raise NetworkError(f"Mininet does not run on Python {sys.version.split()[0]}: {error}") from error
