"""Runs a training script, or a launcher such as torchrun, with the host library attached to all its processes."""

import argparse
import importlib.util
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_STARTUP = Path(__file__).resolve().parent / "torch" / "startup"
_EXAMPLES = """
examples:
  python -m hostlib run train.py --epochs 3
  python -m hostlib run --controller controller:4790 -m package.train
  python -m hostlib run torchrun --nproc-per-node 8 train.py
"""


def main(arguments: Sequence[str]) -> int:
    """Run a script in place of this process; return an exit status where that cannot be done."""
    parser = argparse.ArgumentParser(
        prog="python -m hostlib",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Runs a training script as it is, and registers its job with Trainyard's controller.",
    )
    commands = parser.add_subparsers(required=True, metavar="run")
    run = commands.add_parser("run", help="run a script, a module or a launcher, attached")
    run.add_argument("--controller", metavar="ADDRESS", help="HOST:PORT or unix:/PATH (default: TRAINYARD_CONTROLLER)")
    run.add_argument("--job", metavar="NAME", help="name of the job (default: TRAINYARD_JOB, else the script's)")
    run.add_argument("-m", dest="module", action="store_true", help="what follows is a module")
    run.add_argument("script", help="a Python script, a module, or a program such as train.sh or torchrun")
    run.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    given = parser.parse_args(arguments)
    if importlib.util.find_spec("torch") is None:
        print("PyTorch is not installed here: pip install './hostlib[torch]' in the checkout", file=sys.stderr)
        return 1
    command = _command(given.script, given.arguments, is_module=given.module)
    if command is not None:
        environment = attached_environment(os.environ, given.controller, given.job)
        os.execve(command[0], command, environment)  # nosec B606 # what the user asks for, as it stands
    print(f"{given.script}: neither a file nor a program on PATH", file=sys.stderr)
    return 2


def attached_environment(
    environment: Mapping[str, str], controller: str | None = None, job: str | None = None
) -> dict[str, str]:
    """Return an environment in which every Python process that uses torch.distributed is attached.

    Args:
        environment: What the processes have otherwise.
        controller: The controller's address; None: the environment's.
        job: The job's name; None: the environment's, else the script's.
    """
    paths = [str(_STARTUP), *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    given = {"TRAINYARD_CONTROLLER": controller, "TRAINYARD_JOB": job}
    return {
        **environment,
        **{name: value for name, value in given.items() if value is not None},
        "TRAINYARD_ATTACH": "1",
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)),
    }


def _command(script: str, arguments: Sequence[str], *, is_module: bool) -> list[str] | None:
    if is_module:
        return [sys.executable, "-m", script, *arguments]
    file = Path(script)
    if file.is_file():
        is_program = file.suffix != ".py" and os.access(file, os.X_OK)
        return [str(file.absolute()), *arguments] if is_program else [sys.executable, script, *arguments]
    beside = Path(sys.executable).parent / script
    program = str(beside) if beside.is_file() else shutil.which(script)
    return None if program is None else [program, *arguments]
