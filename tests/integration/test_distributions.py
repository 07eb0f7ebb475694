"""The two distributions as pip builds them: what they hold, and the host library alone in an empty environment."""

import shutil
import subprocess
import sys
import sysconfig
import zipfile
from email import message_from_string
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_NEEDED_BY_HOSTLIB = ("grpc", "google", "typing_extensions.py")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Wheels of a copy of the checkout, by distribution: building writes into the source folder."""
    source, built = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheels")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--wheel-dir", str(built), "./hostlib", "."], cwd=source, check=True)
    return {path.name.split("-")[0]: path for path in built.glob("*.whl")}


def _files(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def test_the_host_library_is_one_top_level_module_with_two_dependencies(wheels: dict[str, Path]) -> None:
    assert {name.split("/")[0] for name in _files(wheels["trainyard_hostlib"])} == {"hostlib"}
    with zipfile.ZipFile(wheels["trainyard_hostlib"]) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("METADATA")]
        needed = message_from_string(archive.read(name).decode()).get_all("Requires-Dist", [])
    assert sorted(line.split(">")[0] for line in needed if "extra ==" not in line) == ["grpcio", "protobuf"]


def test_the_host_library_has_what_attaches_the_processes_of_a_script(wheels: dict[str, Path]) -> None:
    assert "hostlib/torch/startup/sitecustomize.py" in _files(wheels["trainyard_hostlib"])


def test_trainyard_has_its_data_and_no_tests(wheels: dict[str, Path]) -> None:
    files = _files(wheels["trainyard"])
    assert not {name.split("/")[0] for name in files} & {"hostlib", "tests", "benchmarks", "docs"}
    assert files >= {
        "experiments/report/templates/page.html",
        "p4src/build/trainyard.json",
        "policies/py.typed",
        "workloads/scenarios/fig20.yaml",
        "workloads/traces/assumptions.yaml",
    }


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
