"""The folder of a run is gone with the run, however the run ended."""

import asyncio
import subprocess
import sys
from pathlib import Path

from experiments.scenarios.real_hosts.run_folder import run_folder
from tests.patience import until

_OWNER = (
    "from experiments.scenarios.real_hosts.run_folder import run_folder\n"
    "with run_folder() as folder:\n"
    "    (folder / 'token').touch()\n"
    "    print(folder, flush=True)\n"
    "    input()\n"
)


def test_the_folder_is_gone_at_the_end_of_the_context() -> None:
    with run_folder() as folder:
        (folder / "token").touch()
    assert not folder.exists()


def test_the_folder_of_a_killed_run_is_removed() -> None:
    owner = subprocess.Popen([sys.executable, "-c", _OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    folder = Path(owner.stdout.readline().strip())
    assert (folder / "token").exists()
    owner.kill()
    owner.communicate()
    asyncio.run(until(lambda: not folder.exists()))
