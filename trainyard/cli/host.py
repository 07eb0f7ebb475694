"""``trainyard host``: a program in a host of an emulator that runs with ``--hosts``."""

import os
from functools import partial
from typing import Annotated

import typer

from topologies.namespaces import enter
from topologies.namespaces.running_hosts import RunningHosts, running_hosts
from trainyard.cli.exits import fail, refuse

HostArgument = Annotated[
    str | None, typer.Argument(metavar="HOST", help="Name of the host. Without it, all hosts are listed.")
]
CommandArgument = Annotated[
    list[str] | None, typer.Argument(metavar="COMMAND...", help="What to run there. Default: a shell.")
]
EmulatorOption = Annotated[
    int | None, typer.Option("--emulator", metavar="PID", help="The emulator's process, where several run.")
]


def host(host: HostArgument = None, command: CommandArgument = None, emulator: EmulatorOption = None) -> None:
    """Run a program in a host of a running emulator, whose hosts are those of --hosts."""
    if os.geteuid():
        refuse("hosts are network namespaces of root: run as root")
    found = _of(running_hosts(), emulator)
    if host is None:
        print(*found.places, sep="\n")
        return
    if host not in found.places:
        refuse(f"there is no host {host!r}; there is {', '.join(found.places)}")
    shell = [os.environ.get("SHELL", "/bin/sh")]
    try:
        status = enter.run_in(found.places[host], partial(enter.execute, command or shell))
    except OSError as error:
        fail(f"{host} cannot be entered: {error.filename}: {error.strerror}")
    raise typer.Exit(status)


def _of(running: list[RunningHosts], emulator: int | None) -> RunningHosts:
    if emulator is not None:
        running = [each for each in running if each.pid == emulator]
    if not running:
        which = "emulator" if emulator is None else f"process {emulator}"
        refuse(f"no {which} runs with hosts; start one by trainyard emulator --hosts")
    if len(running) > 1:
        refuse(f"several emulators run with hosts: add --emulator {' or '.join(str(each.pid) for each in running)}")
    return running[0]
