"""The command ``trainyard``.

Exit status: 0 all went well, 1 a run or the controller failed, 2 the input is bad and nothing has been started.
"""

import os
import sys

COMPLETE = "_TRAINYARD_COMPLETE"
"""The environment variable by which the script of a shell asks for completions."""

_EXTRAS = {"matplotlib": "report", "jinja2": "report", "markupsafe": "report", "psycopg": "postgresql", "ray": "ray"}


def main() -> None:
    """Run the command that the process's arguments name; says which extra to install where a package is missing."""
    if sys.argv[1:2] == ["agent"]:
        # Hosts have none of the packages that the other commands need.
        from hostlib.agent import main as agent

        sys.exit(agent(sys.argv[2:]))
    try:
        from trainyard.cli.application import application

        if COMPLETE in os.environ:
            from trainyard.cli.completion import prepare_completion

            prepare_completion()
        application()
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        distribution = f"trainyard[{_EXTRAS[package]}]" if package in _EXTRAS else "trainyard"
        print(f"this needs the package {package}: install {distribution}", file=sys.stderr)
        sys.exit(2)
