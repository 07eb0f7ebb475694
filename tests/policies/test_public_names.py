"""``import policies`` shows the names in ``__all__`` and nothing else."""

import subprocess
import sys
from types import ModuleType

import policies


def test_every_exported_name_is_there() -> None:
    assert policies.__all__ == sorted(policies.__all__)
    assert dir(policies) == policies.__all__
    for name in policies.__all__:
        found = getattr(policies, name)
        module = getattr(found, "__module__", "policies")
        assert module.startswith(("policies", "collections.abc", "typing")), name


def test_nothing_else_leaks() -> None:
    names = {
        name for name, value in vars(policies).items() if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert names <= set(policies.__all__)


def test_the_package_alone_imports_nothing_heavy() -> None:
    script = "import sys, policies; sys.exit(bool({'numpy', 'scipy', 'pydantic'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
