"""Certificates for tests, as PEM files in a folder, from the authority that ``trainyard certificates`` makes too."""

from pathlib import Path
from typing import NamedTuple

from controller.access import authority


class Identity(NamedTuple):
    """The PEM files of a certificate for 127.0.0.1 and of its key."""

    certificate: Path
    key: Path


class Authority:
    """An authority whose own certificate is the file ``ca``; it issues into the same folder."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self._authority = authority.Authority.new(days=1)
        self._authority.pair.write(folder, name)
        self.ca = folder / f"{name}.pem"

    def issue(self, name: str) -> Identity:
        """Issue a certificate; one that has been issued under this name is replaced."""
        self._authority.server(name, ["127.0.0.1"], days=1).write(self._folder, name)
        return Identity(self._folder / f"{name}.pem", self._folder / f"{name}.key")
