import subprocess
import sys

from tests.patience import PATIENCE_S
from tests.trainyard.cli.conftest import Trainyard


def test_the_agent_reads_its_own_options(trainyard: Trainyard) -> None:
    result = trainyard("agent", "--host", "h0", "--nic", "none@1")
    assert result.exit_code == 2
    assert result.stderr.startswith("--nic none: there is no such interface; there are ")


def test_it_needs_none_of_the_other_commands_packages() -> None:
    missing = "".join(f"sys.modules[{name!r}] = None; " for name in ("typer", "pydantic", "yaml", "networkx", "numpy"))
    program = f"import sys; {missing}sys.argv = ['trainyard', 'agent', '--help']; import trainyard.cli as c; c.main()"
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert said.returncode == 0, said.stderr
    assert said.stdout.startswith("usage: trainyard agent")
