"""The examples of README and docs run, and print what the docs say."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from controller.config import load_config
from experiments.scenarios.controller_process import ControllerProcess
from tests.patience import PATIENCE_S
from workloads.loading import load_scenario, load_topology

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples"


def _output_of(program: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(program)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def _indented_block(document: str, after: str) -> list[str]:
    """Return the lines of the first block after ``after`` that is indented by four spaces, without the indentation."""
    lines = document.partition(after)[2].splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("    "))
    block = []
    for line in lines[first:]:
        if line and not line.startswith("    "):
            break
        block.append(line.removeprefix("    "))
    return [line for line in block if line.strip()]


def test_the_yaml_files_are_accepted() -> None:
    assert len(load_scenario(EXAMPLES / "two-jobs.yaml").jobs) == 2
    config = load_config(EXAMPLES / "controller.yaml")
    assert load_topology(EXAMPLES / "fabric.yaml").build() == config.topology.build()
    assert len(load_config(EXAMPLES / "bmv2-controller.yaml").switches) == 4


def test_the_docs_show_the_job_that_is_shipped(tmp_path: Path) -> None:
    document = (ROOT / "docs" / "train-models.md").read_text(encoding="utf-8")
    shown = document.partition("```python\n")[2].partition("```")[0]
    assert shown == (EXAMPLES / "job.py").read_text(encoding="utf-8")

    async def run() -> str:
        config = load_config(EXAMPLES / "controller.yaml").model_copy(update={"listen": "127.0.0.1:0", "web": None})
        async with ControllerProcess(config) as process:
            job = tmp_path / "job.py"
            job.write_text(shown.replace("127.0.0.1:4790", process.address))
            return await asyncio.to_thread(_output_of, job)

    output = asyncio.run(run())
    assert output.startswith("send from port ")
    assert "level=7" in output


def test_a_flow_is_followed_as_the_docs_show_it() -> None:
    document = (ROOT / "docs" / "following-a-flow.md").read_text(encoding="utf-8")
    printed = iter(_output_of(EXAMPLES / "follow_a_flow.py").splitlines())
    for line in _indented_block(document, "a trace of the queues."):
        if line.strip() != "...":
            wanted = line.removesuffix("...")
            assert any(found.startswith(wanted) for found in printed), f"not printed, or not in this order: {line}"
