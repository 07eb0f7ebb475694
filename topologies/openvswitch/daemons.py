"""An Open vSwitch of our own: a database and a switch daemon, apart from any that the machine runs.

Its sockets, database and logs are in a folder of its own, and packets go through the userspace datapath, so that it
needs no kernel module. Both daemons stay in the foreground: they are children of the process that starts them.
"""

import fcntl
import os
import shutil
import socket
import subprocess  # nosec B404 # runs Open vSwitch, without a shell
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from topologies.namespaces.host_network import NetworkError

ALONE = ("setpriv", "--pdeathsig", "KILL", "--")
"""The beginning of a command line: what follows ends with the thread that starts it, SIGKILL included."""

_SERVER, _SWITCH, _DATABASE_TOOL = "ovsdb-server", "ovs-vswitchd", "ovsdb-tool"
_CONTROL, _FLOWS, _APPLICATION = "ovs-vsctl", "ovs-ofctl", "ovs-appctl"
_PROGRAMS = (_SERVER, _SWITCH, _DATABASE_TOOL, _CONTROL, _FLOWS, _APPLICATION)
_SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
"""Where daemons are, which a user's PATH may lack."""
_SCHEMAS = (Path("/usr/share/openvswitch/vswitch.ovsschema"), Path("/usr/local/share/openvswitch/vswitch.ovsschema"))
_FOLDER_VARIABLES = ("OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR", "OVS_SYSCONFDIR")
_VERSIONS = "OpenFlow10,OpenFlow11,OpenFlow12,OpenFlow13,OpenFlow14,OpenFlow15"
_FOLDER_END = ".openvswitch"
_OWNER = "owner"
_STARTS_WITHIN_S = 60.0
_STOPS_WITHIN_S = 10.0
_LOOK_S = 0.01


class OpenVSwitch:
    """A database and a switch daemon, as a context manager.

        with OpenVSwitch() as switch:
            switch.vsctl("add-br", "t0", "--", "set", "bridge", "t0", "datapath_type=netdev")
            print(switch.ofctl("dump-flows", "t0"))

    It ends with the process that starts it. One that is killed leaves the folder behind, which the next one removes.

    Args:
        beginning: What the daemons' command lines begin with: it decides with what they end, and in which namespaces
            they run.
        has_dummies: Whether bridges may have the datapath ``dummy`` and ports the type ``dummy``, for which no
            interfaces are made.
        folder: A folder to use, such as that of others whose bridges have other names; None: one of its own.
        name: What its files in the folder are called.

    Attributes:
        folder: Where its sockets are, while it runs. A controller's Unix socket has to be there, too: Open vSwitch
            connects to no other.
    """

    def __init__(
        self,
        beginning: Sequence[str] = ALONE,
        *,
        has_dummies: bool = False,
        folder: Path | None = None,
        name: str = "switch",
    ) -> None:
        self._beginning = tuple(beginning)
        self._has_dummies = has_dummies
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._name = name
        self._stack = ExitStack()
        self._given_folder = folder
        self.folder = Path()

    def __enter__(self) -> Self:
        """Start both daemons. Raises NetworkError where Open vSwitch is not installed, or one does not start."""
        if self._daemons:
            raise NetworkError("this Open vSwitch runs already")
        schema = _require_installed()
        self.folder = self._given_folder or self._stack.enter_context(openvswitch_folder())
        try:
            _run(self.environment, _DATABASE_TOOL, "create", str(self._database), str(schema))
            self._start(_SERVER)
            self.vsctl("--no-wait", "init")
            self._start(_SWITCH)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the daemons, the switch first, and remove a folder of its own."""
        for daemon in reversed(self._daemons.values()):
            _end(daemon)
        self._daemons.clear()
        self._stack.close()
        self.folder = Path()

    @property
    def database_socket(self) -> Path:
        """The socket at which OVSDB answers."""
        return self.folder / f"{self._name}.sock"

    @property
    def environment(self) -> dict[str, str]:
        """Variables by which the programs of Open vSwitch find this one."""
        return _with_system_folders(dict(os.environ)) | dict.fromkeys(_FOLDER_VARIABLES, str(self.folder))

    @property
    def process_ids(self) -> tuple[int, ...]:
        """The processes of the daemons, or of what ``beginning`` starts for each: the database's, the switch's."""
        return tuple(daemon.pid for daemon in self._daemons.values())

    @property
    def runs(self) -> bool:
        """Whether both daemons run."""
        return len(self._daemons) > 1 and all(daemon.poll() is None for daemon in self._daemons.values())

    def vsctl(self, *arguments: str) -> str:
        """Run ``ovs-vsctl`` on its database; return what it says. Raises NetworkError with its complaint."""
        options = (f"--timeout={_STARTS_WITHIN_S:.0f}", f"--db=unix:{self.database_socket}")
        return _run(self.environment, _CONTROL, *options, *arguments)

    def ofctl(self, *arguments: str) -> str:
        """Run ``ovs-ofctl`` on one of its bridges; return what it says. Raises NetworkError with its complaint."""
        return _run(self.environment, _FLOWS, f"--protocols={_VERSIONS}", *arguments)

    def appctl(self, *arguments: str) -> str:
        """Run ``ovs-appctl`` on the switch daemon; return what it says. Raises NetworkError with its complaint."""
        return _run(self.environment, _APPLICATION, f"--target={self._control_socket(_SWITCH)}", *arguments)

    def restart(self) -> None:
        """Start the daemons again that have ended, with the bridges that there were. Flow entries are lost.

        Raises:
            NetworkError: One does not start again.
        """
        for program in (_SERVER, _SWITCH):
            if program not in self._daemons or self._daemons[program].poll() is not None:
                self._start(program)

    def restart_switch(self) -> None:
        """Kill the switch daemon and start it again: its flow entries are lost, its bridges are not.

        Raises:
            NetworkError: It does not start again.
        """
        killed = self._daemons[_SWITCH]
        killed.kill()
        killed.wait()
        self.restart()

    def _start(self, program: str) -> None:
        """Start a daemon and wait until it answers."""
        control = self._control_socket(program)
        by_s = time.monotonic() + _STARTS_WITHIN_S
        while _answers(control) and time.monotonic() < by_s:
            time.sleep(_LOOK_S)  # the one before is about to end
        control.unlink(missing_ok=True)
        log = control.with_suffix(".log")
        options = (f"--unixctl={control}", f"--log-file={log}", "-vconsole:off", "--no-chdir")
        self._daemons[program] = daemon = subprocess.Popen(  # nosec B603 # no shell
            [*self._beginning, program, *self._arguments(program), *options],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        while not _answers(control):
            if daemon.poll() is not None or time.monotonic() > by_s:
                last = log.read_text(errors="replace").strip().rpartition("\n")[2] if log.exists() else ""
                raise NetworkError(f"{program} does not start: {last or f'exit status {daemon.poll()}'}")
            time.sleep(_LOOK_S)

    def _arguments(self, program: str) -> list[str]:
        if program == _SERVER:
            return [str(self._database), f"--remote=punix:{self.database_socket}"]
        return [f"unix:{self.database_socket}", "--disable-system", *(["--enable-dummy"] if self._has_dummies else [])]

    @property
    def _database(self) -> Path:
        return self.folder / f"{self._name}.db"

    def _control_socket(self, program: str) -> Path:
        return self.folder / f"{self._name}-{program}.ctl"


def missing_programs() -> list[str]:
    """Return what of Open vSwitch is not found on this machine, by name."""
    path = _with_system_folders(dict(os.environ))["PATH"]
    missing = [program for program in _PROGRAMS if shutil.which(program, path=path) is None]
    return missing if _schema() else [*missing, _SCHEMAS[0].name]


@contextmanager
def openvswitch_folder() -> Iterator[Path]:
    """Make a folder for as long as the context lasts; remove those of owners that are gone.

    Its owner holds a lock on a file in it. Numbers of processes would not tell: owners may be in other namespaces.
    """
    place = Path(tempfile.gettempdir())
    for left_behind in place.glob(f"trainyard-*{_FOLDER_END}"):
        if not left_behind.is_symlink() and _is_abandoned(left_behind / _OWNER):
            shutil.rmtree(left_behind, ignore_errors=True)
    made = Path(tempfile.mkdtemp(prefix="trainyard-"))
    folder = made.with_name(made.name + _FOLDER_END)
    with (made / _OWNER).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made.rename(folder)  # only now others look at it
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _is_abandoned(owner: Path) -> bool:
    try:
        with owner.open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # it is held, somebody else's, or just being removed
        return False
    return True


def _require_installed() -> Path:
    """Return the schema of the database. Raises NetworkError where something is missing."""
    if missing := missing_programs():
        raise NetworkError(f"{', '.join(missing)} not found: apt-get install openvswitch-switch")
    schema = _schema()
    assert schema is not None
    return schema


def _schema() -> Path | None:
    return next((schema for schema in _SCHEMAS if schema.is_file()), None)


def _with_system_folders(environment: dict[str, str]) -> dict[str, str]:
    return environment | {"PATH": os.pathsep.join((environment.get("PATH", os.defpath), *_SYSTEM_FOLDERS))}


def _run(environment: dict[str, str], *command: str) -> str:
    done = subprocess.run(  # nosec B603 # no shell
        command, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise NetworkError(f"{' '.join(command)}: {done.stderr.strip() or f'exit status {done.returncode}'}")
    return done.stdout


def _answers(path: Path) -> bool:
    """Tell whether a process listens at a Unix socket."""
    with socket.socket(socket.AF_UNIX) as tried:
        return tried.connect_ex(str(path)) == 0


def _end(daemon: subprocess.Popen[bytes]) -> None:
    daemon.terminate()
    try:
        daemon.wait(_STOPS_WITHIN_S)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()
