"""The two distributions as pip builds them: what they hold, and the host library alone in an empty environment."""

import email
import os
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path, PurePath

import pytest

from tests.deploy.checkout import ROOT, copy_checkout, tracked_files

_NEEDED_BY_HOSTLIB = ("grpc", "google", "typing_extensions.py")
_NO_PART_OF_A_WHEEL = {"hostlib/pyproject.toml"}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Wheels by distribution, each built from its source distribution, of a copy of the checkout."""
    source, built = copy_checkout(tmp_path_factory.mktemp("source")), tmp_path_factory.mktemp("wheels")
    for folder in ("./hostlib", "."):
        # Without --wheel or --sdist, it makes a wheel from the source distribution that it has made.
        build = [sys.executable, "-m", "build", "--no-isolation", "--skip-dependency-check", "--outdir", str(built)]
        told = subprocess.run([*build, folder], cwd=source, capture_output=True, text=True, check=False)
        assert told.returncode == 0, told.stdout + told.stderr
    assert len(list(built.glob("*.tar.gz"))) == 2
    return {path.name.split("-")[0]: path for path in built.glob("*.whl")}


def _files(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def test_the_host_library_is_one_top_level_module_with_two_dependencies(wheels: dict[str, Path]) -> None:
    assert {name.split("/")[0] for name in _files(wheels["trainyard_hostlib"])} == {"hostlib"}
    with zipfile.ZipFile(wheels["trainyard_hostlib"]) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("METADATA")]
        needed = email.message_from_string(archive.read(name).decode()).get_all("Requires-Dist", [])
    assert sorted(line.split(">")[0] for line in needed if "extra ==" not in line) == ["grpcio", "protobuf"]


def test_the_host_library_has_what_attaches_the_processes_of_a_script(wheels: dict[str, Path]) -> None:
    assert "hostlib/torch/startup/sitecustomize.py" in _files(wheels["trainyard_hostlib"])


def test_wheels_hold_every_file_of_their_packages_and_nothing_else(wheels: dict[str, Path]) -> None:
    folders = {pattern.rstrip("*") for pattern in _packages()} | {"hostlib"}
    of_packages = {name for name in tracked_files() if PurePath(name).parts[0] in folders} - _NO_PART_OF_A_WHEEL
    held = _files(wheels["trainyard"]) | _files(wheels["trainyard_hostlib"])
    assert of_packages - held == set(), "files that pyproject.toml leaves out of the wheels"
    assert held - of_packages == set(), "files in the wheels that are none of ours"
    assert _files(wheels["trainyard"]).isdisjoint(_files(wheels["trainyard_hostlib"]))


def _packages() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    found: list[str] = project["tool"]["setuptools"]["packages"]["find"]["include"]
    return found


def test_wheels_work_in_a_fresh_environment(wheels: dict[str, Path], tmp_path: Path) -> None:
    environment = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    python = environment / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--quiet", "--python", str(python), "install", "--no-index", "--no-deps"]
    _said(*pip, *wheels.values())
    site = Path(_said(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    # What they need comes from the environment of the tests. Its own installation of them is editable, and stays out.
    (site / "needed.pth").write_text(sysconfig.get_path("purelib"))
    where = "import controller, hostlib, trainyard; print(controller.__file__, hostlib.__file__, trainyard.__file__)"
    assert all(path.startswith(str(site)) for path in _said(python, "-c", where).split())
    command = environment / "bin" / "trainyard"
    assert "Usage: trainyard" in _said(command, "--help")
    assert "Crux" in _said(command, "policies")
    assert _said(command, "check", str(ROOT / "docs/examples/controller.yaml")) == "ok\n"
    assert "run" in _said(python, "-m", "hostlib", "--help")
    assert "GPU" in _said(command, "run", str(ROOT / "docs/examples/two-jobs.yaml"), "--on", "simulator")


def _said(*command: str | Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ran = subprocess.run(list(map(str, command)), cwd="/", env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_the_host_library_works_in_an_environment_that_has_nothing_else(
    wheels: dict[str, Path], tmp_path: Path
) -> None:
    environment = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    site = environment / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    packages = Path(sysconfig.get_path("purelib"))
    for name in _NEEDED_BY_HOSTLIB:
        (site / name).symlink_to(packages / name)
    with zipfile.ZipFile(wheels["trainyard_hostlib"]) as archive:
        archive.extractall(site)
    code = "import hostlib; from hostlib.arrangements import coflow; print(hostlib.Job.__name__, coflow(2))"
    python = str(environment / "bin" / "python")
    ran = subprocess.run([python, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("Job (0.0, 0.0)\n", "")
    agent = subprocess.run([python, "-m", "hostlib.agent", "--help"], cwd=tmp_path, capture_output=True, text=True)
    assert agent.returncode == 0
    assert "--controller" in agent.stdout
