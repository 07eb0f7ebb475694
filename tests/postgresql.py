"""A PostgreSQL server, where its programs are installed: in a folder that goes with it, on a socket there.

With ``listen`` it is reached by TCP too, in the network namespace of the thread that starts it.
"""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import count
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from tests.patience import PATIENCE_S
from tests.ports import free_port

_PACKAGED = "/usr/lib/postgresql"


class NotInstalledError(Exception):
    """There is no server, or no driver; the message says which."""


class Server:
    """A running server, whose databases are made as they are asked for."""

    def __init__(self, folder: Path, port: int, start: "Callable[[], subprocess.Popen[bytes]]") -> None:
        self._folder = folder
        self._port = port
        self._start = start
        self._process = start()
        self._numbers = count(1)

    def new_database(self) -> str:
        """The URL of a database that is empty."""
        import psycopg

        name = f"trainyard_{next(self._numbers)}"
        with psycopg.connect(f"{self._conninfo} dbname=postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return f"postgresql+psycopg://trainyard@/{name}?host={self._folder}&port={self._port}"

    def by_tcp(self, address: str, host: str) -> str:
        """The URL of a database by TCP."""
        return f"postgresql+psycopg://trainyard@{host}:{self._port}/{_name_of(address)}"

    def execute(self, address: str, script: str) -> None:
        """Execute statements on a database."""
        import psycopg

        with psycopg.connect(f"{self._conninfo} dbname={_name_of(address)}", autocommit=True) as connection:
            connection.execute(script.encode())

    def fetch(self, address: str, query: str) -> list[tuple[Any, ...]]:
        """Read rows of a database."""
        import psycopg

        with psycopg.connect(f"{self._conninfo} dbname={_name_of(address)}", autocommit=True) as connection:
            return connection.execute(query.encode()).fetchall()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Have it stand still meanwhile: connections stay, and nothing is answered."""
        self._signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._signal(signal.SIGCONT)

    @contextmanager
    def down(self) -> Iterator[None]:
        """Have it end, with all connections, and start again afterwards."""
        self.end(signal.SIGINT)
        try:
            yield
        finally:
            self._process = self._start()
            self.wait_until_there()

    def end(self, number: int = signal.SIGQUIT) -> None:
        """End it; SIGQUIT is at once, without a word to the disk."""
        self._process.send_signal(number)
        self._process.wait()

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
        return f"host={self._folder} port={self._port} user=trainyard"


@contextmanager
def running(listen: str = "") -> Iterator[Server]:
    """A new server, ended in the end. Raises NotInstalledError."""
    found = programs()
    try:
        import_module("psycopg")
    except ImportError as error:
        raise NotInstalledError("its driver is not installed: trainyard[postgresql]") from error
    folder = Path(tempfile.mkdtemp(prefix="trainyard-pg-"))
    # It does not run as root.
    owner = pwd.getpwnam("postgres" if _is_user("postgres") else "nobody") if os.geteuid() == 0 else None
    user: dict[str, Any] = {}
    try:
        if owner is not None:
            os.chown(folder, owner.pw_uid, owner.pw_gid)
            user = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
        initdb = (found / "initdb", "--auth=trust", "--username=trainyard", "--encoding=UTF8", "--no-sync")
        subprocess.run((*initdb, folder / "data"), check=True, capture_output=True, cwd=folder, **user)
        if listen:
            with (folder / "data" / "pg_hba.conf").open("a") as allowed:
                allowed.write("host all all all trust\n")
        port = free_port() if listen else 5432
        options = ("-k", folder, "-h", listen, "-p", str(port), "-F")

        def start() -> "subprocess.Popen[bytes]":
            return subprocess.Popen(
                (found / "postgres", "-D", folder / "data", *options),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=folder,
                start_new_session=True,
                **user,
            )

        server = Server(folder, port, start)
        try:
            server.wait_until_there()
            yield server
        finally:
            server.end()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _name_of(address: str) -> str:
    """The name of the database at a URL."""
    return address.partition("?")[0].rpartition("/")[2]


def programs() -> Path:
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
