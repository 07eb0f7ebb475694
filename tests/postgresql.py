"""A PostgreSQL server, where its programs are installed: in a folder that goes with it, on a socket there."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from time import monotonic, sleep

from tests.patience import PATIENCE_S

_PACKAGED = "/usr/lib/postgresql"


class NotInstalledError(Exception):
    """There is no server, or no driver; the message says which."""


class Server:
    """A running server, whose databases are made as they are asked for."""

    def __init__(self, folder: Path, process: "subprocess.Popen[bytes]") -> None:
        self._folder = folder
        self._process = process
        self._numbers = count(1)

    def new_database(self) -> str:
        """The URL of a database that is empty."""
        import psycopg

        name = f"trainyard_{next(self._numbers)}"
        with psycopg.connect(f"{self._conninfo} dbname=postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return f"postgresql+psycopg://trainyard@/{name}?host={self._folder}"

    def execute(self, address: str, script: str) -> None:
        """Execute statements on a database."""
        import psycopg

        name = address.partition("@/")[2].partition("?")[0]
        with psycopg.connect(f"{self._conninfo} dbname={name}", autocommit=True) as connection:
            connection.execute(script.encode())

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Have it stand still meanwhile: connections stay, and nothing is answered."""
        self._signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._signal(signal.SIGCONT)

    def wait_until_there(self) -> None:
        """Return once it answers."""
        import psycopg

        end_s = monotonic() + PATIENCE_S
        while True:
            try:
                psycopg.connect(f"{self._conninfo} dbname=postgres").close()
                return
            except psycopg.OperationalError:
                if self._process.poll() is not None or monotonic() > end_s:
                    raise
                sleep(0.05)

    def _signal(self, number: int) -> None:
        """To all of its processes."""
        os.killpg(self._process.pid, number)
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        for child in children:  # which have sessions of their own
            os.kill(int(child), number)

    @property
    def _conninfo(self) -> str:
        return f"host={self._folder} user=trainyard"


@contextmanager
def running() -> Iterator[Server]:
    """A new server, ended in the end. Raises NotInstalledError."""
    programs = _programs()
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise NotInstalledError("its driver is not installed: trainyard[postgresql]") from error
    folder = Path(tempfile.mkdtemp(prefix="trainyard-pg-"))
    # It does not run as root.
    owner = pwd.getpwnam("postgres" if _is_user("postgres") else "nobody") if os.geteuid() == 0 else None
    user = {} if owner is None else {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
    try:
        if owner is not None:
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        initdb = (programs / "initdb", "--auth=trust", "--username=trainyard", "--encoding=UTF8", "--no-sync")
        subprocess.run((*initdb, folder / "data"), check=True, capture_output=True, cwd=folder, **user)
        options = ("-k", folder, "-h", "", "-F")
        process = subprocess.Popen(
            (programs / "postgres", "-D", folder / "data", *options),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            start_new_session=True,
            **user,
        )
        try:
            server = Server(folder, process)
            server.wait_until_there()
            yield server
        finally:
            process.send_signal(signal.SIGQUIT)
            process.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    """Where initdb and postgres are; Debian keeps them from the path, as there may be several versions."""
    for folder in (*os.environ.get("PATH", "").split(os.pathsep), *map(str, sorted(Path(_PACKAGED).glob("*/bin")))):
        if all((Path(folder) / name).is_file() for name in ("initdb", "postgres")):
            return Path(folder)
    raise NotInstalledError("its programs initdb and postgres are not installed")


def _is_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True
