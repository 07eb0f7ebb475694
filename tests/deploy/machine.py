"""A machine of its own for a test: this one's files under a layer that goes with it, systemd, and loopback alone.

It takes root, overlayfs, cgroups of version 2, and systemd.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep

from tests.patience import PATIENCE_S

_SYSTEMD = Path("/lib/systemd/systemd")
_CONTROL_GROUPS = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))
_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}
_FETCH = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode(), end='')"
_BOOT = """
set -eu
mount -t tmpfs tmpfs /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root
cd /mnt/root
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs dev
mkdir dev/shm dev/pts old
for device in null zero full random urandom tty; do
    touch dev/$device
    mount --bind /dev/$device dev/$device
done
mount -t devpts -o ptmxmode=666,newinstance devpts dev/pts
ln -s pts/ptmx dev/ptmx
# Nothing of this machine's own services, and nothing that would set up the kernel, which both machines share.
for folder in etc/systemd/system lib/systemd/system; do
    find $folder -name '*.wants' -exec rm -rf {} +
done
rm -f etc/machine-id
touch etc/machine-id
printf '[Unit]\\nRequires=systemd-journald.service\\n' >etc/systemd/system/machine.target
ip link set lo up
pivot_root . old
umount -l /old
export container=test
exec /lib/systemd/systemd --system --unit=machine.target --show-status=no </dev/null >/dev/null 2>&1
"""


class NoMachineError(Exception):
    """This machine cannot hold another; the message says why."""


class Machine:
    """A running machine, by the number of its first process."""

    def __init__(self, first: int) -> None:
        self._first = first

    def command(self, *words: str | Path) -> list[str]:
        """A command line that runs another in the machine."""
        return ["nsenter", "--target", str(self._first), "--all", "--", *map(str, words)]

    def run(self, *words: str | Path) -> str:
        """Run a command in the machine; returns what it prints. Raises AssertionError where it fails."""
        ran = subprocess.run(self.command(*words), env=_ENVIRONMENT, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, f"{' '.join(map(str, words))}: {ran.returncode}\n{ran.stdout}{ran.stderr}"
        return ran.stdout

    def property(self, unit: str, name: str) -> str:
        """A property of a unit, as systemd knows it."""
        return self.run("systemctl", "show", "--property", name, "--value", unit).strip()

    def start(self, unit: str) -> None:
        """Start a unit. Raises AssertionError, with its log, where that fails."""
        try:
            self.run("systemctl", "start", unit)
        except AssertionError as error:
            raise AssertionError(self.log(unit)) from error

    def log(self, unit: str) -> str:
        """What a unit has logged, and systemd about it."""
        return self.run("journalctl", "--no-pager", "--output", "cat", "--unit", unit)

    def output(self, unit: str) -> str:
        """What the processes of a service have printed."""
        return self.run("journalctl", "--no-pager", "--output", "cat", f"_SYSTEMD_UNIT={unit}.service")

    def write(self, path: str, text: str) -> None:
        """Write a file."""
        subprocess.run(
            self.command("tee", path), env=_ENVIRONMENT, input=text.encode(), capture_output=True, check=True
        )

    def put(self, file: Path, path: str) -> None:
        """Copy a file of this machine into it."""
        with file.open("rb") as copied:
            subprocess.run(self.command("tee", path), env=_ENVIRONMENT, stdin=copied, capture_output=True, check=True)

    def fetching(self, url: str) -> list[str]:
        """A command that prints what a URL has, to ``run`` it or to wait for what it says."""
        return [str(Path(sys.executable).resolve()), "-c", _FETCH, url]

    def until(self, *words: str | Path, says: str) -> str:
        """Run a command again and again until what it prints has a regular expression; returns all of that."""
        end_s = monotonic() + PATIENCE_S
        while True:
            ran = subprocess.run(self.command(*words), env=_ENVIRONMENT, capture_output=True, text=True, check=False)
            if re.search(says, ran.stdout, re.MULTILINE):
                return ran.stdout
            assert monotonic() < end_s, f"{' '.join(map(str, words))} does not say {says!r}: {ran.stdout}{ran.stderr}"
            sleep(0.2)


@contextmanager
def running_machine() -> Iterator[Machine]:
    """A machine that has started, and ends with the context. Raises NoMachineError."""
    if os.geteuid() != 0 or not _SYSTEMD.exists():
        raise NoMachineError("another machine inside this one takes root and systemd")
    roots = [path for path in _CONTROL_GROUPS if (path / "cgroup.procs").exists()]
    if not roots or not os.access(roots[0] / "cgroup.procs", os.W_OK):
        raise NoMachineError("another machine inside this one takes cgroups of version 2 that may be written to")
    group = roots[0] / f"trainyard-{os.getpid()}"
    group.mkdir()
    # It ends with this process, however that ends.
    enter = f"echo $$ >{group}/cgroup.procs; exec setpriv --pdeathsig KILL "
    unshare = 'unshare --mount --pid --fork --kill-child --net --uts --ipc --cgroup sh -c "$0"'
    started = subprocess.Popen(["sh", "-c", enter + unshare, _BOOT], stderr=subprocess.PIPE, text=True)
    try:
        machine = Machine(_child(started))
        _wait_until_started(machine, started)
        yield machine
    finally:
        started.kill()
        started.communicate()
        _remove(group)


def _child(started: "subprocess.Popen[str]") -> int:
    """The first process of the machine, which `unshare` has started."""
    while started.poll() is None:
        children = Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()
        if children:
            return int(children[0])
        sleep(0.01)
    raise NoMachineError(f"another machine inside this one does not start: {started.communicate()[1].strip()}")


def _wait_until_started(machine: Machine, started: "subprocess.Popen[str]") -> None:
    end_s = monotonic() + PATIENCE_S
    asked = machine.command("systemctl", "is-active", "machine.target")
    while monotonic() < end_s:
        if started.poll() is not None:
            raise NoMachineError(f"another machine inside this one does not start: {started.communicate()[1].strip()}")
        ran = subprocess.run(asked, env=_ENVIRONMENT, capture_output=True, text=True, check=False)
        if ran.stdout.strip() == "active":
            return
        sleep(0.1)
    raise NoMachineError("another machine inside this one does not start in time")


def _remove(group: Path) -> None:
    """Remove a control group and those inside it, once their processes have gone."""
    end_s = monotonic() + PATIENCE_S
    while group.exists() and monotonic() < end_s:
        for inside in sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True):
            with suppress(OSError):  # its processes are still ending
                inside.rmdir()
        with suppress(OSError):
            group.rmdir()
        sleep(0.05)
