"""Run the controller: ``python -m controller --config FILE``, the same as ``trainyard controller``."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from controller.config import ConfigError, ConfigFile
from controller.errors import DaemonError
from controller.process.daemon import run
from topologies.logs import LogFormat, LogLevel
from topologies.printable import printable


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the controller until SIGTERM or SIGINT; returns 0, 1 where it fails, or 2 for a bad configuration."""
    parser = argparse.ArgumentParser("controller", description="Run the controller until SIGTERM or SIGINT.")
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="YAML file of its configuration")
    for option, of in (("--log-level", LogLevel), ("--log-format", LogFormat)):
        parser.add_argument(option, type=of, choices=tuple(of), help=f"in place of {option[2:].replace('-', '.')}")
    given = parser.parse_args(arguments)
    file = ConfigFile(given.config, given.log_level, given.log_format)
    try:
        config = file.read()
    except ConfigError as error:
        print(*map(printable, error.messages), sep="\n", file=sys.stderr)
        return 2
    try:
        run(config, file)
    except (OSError, DaemonError) as error:
        print(printable(f"the controller failed: {error}"), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
