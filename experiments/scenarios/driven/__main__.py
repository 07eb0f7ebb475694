"""``python -m experiments.scenarios.driven --config FILE [--start-s SECONDS]``: a controller with driven time."""

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path

import grpc

from controller.config import ConfigError, load_config
from controller.process.active_controller import ExternalTime
from controller.process.core import ControllerCore
from controller.process.daemon import serve
from experiments.scenarios.driven.clock import DrivenClock
from experiments.scenarios.driven.service import DrivenTimeService
from topologies.logs import log_to_stderr

_DESCRIPTION = "A controller whose clock a run moves."


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(prog="python -m experiments.scenarios.driven", description=_DESCRIPTION)
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="YAML file of its configuration.")
    parser.add_argument("--start-s", type=float, default=0.0, metavar="SECONDS", help="Where its clock begins.")
    options = parser.parse_args(arguments)
    try:
        config = load_config(options.config)
    except ConfigError as error:
        parser.error(str(error))
    if config.leadership is not None:
        parser.error("leadership: leases need real time, not a driven clock")
    clock = DrivenClock(options.start_s)

    def services(controller: ControllerCore) -> tuple[grpc.GenericRpcHandler, ...]:
        return (DrivenTimeService.of(controller, clock).handler(),)

    log_to_stderr()
    asyncio.run(serve(config, ExternalTime(clock, services)))


if __name__ == "__main__":
    main()
