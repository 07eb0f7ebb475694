"""How commands reach a running controller: its addresses, and what they show it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from controller.api.operations.client import Operations, OperationsError, UnknownNameError
from hostlib.addresses import check_address
from hostlib.credentials import Credentials
from trainyard.cli.exits import fail, refuse

CaOption = Annotated[
    Path | None, typer.Option("--ca", metavar="FILE", help="The authorities to trust (PEM). Default: $TRAINYARD_CA.")
]
CertificateOption = Annotated[
    Path | None,
    typer.Option("--certificate", metavar="FILE", help="Your certificate (PEM). Default: $TRAINYARD_CERTIFICATE."),
]
KeyOption = Annotated[Path | None, typer.Option("--key", metavar="FILE", help="Its key. Default: $TRAINYARD_KEY.")]
TokenFileOption = Annotated[
    Path | None,
    typer.Option("--token-file", metavar="FILE", help="A file with your token. Default: $TRAINYARD_TOKEN_FILE."),
]


class Shown(NamedTuple):
    """The files that a command shows a controller; None: what the environment says."""

    ca: Path | None
    certificate: Path | None
    key: Path | None
    token_file: Path | None


@contextmanager
def connect_or_exit(addresses: Sequence[str], shown: Shown) -> Iterator[Operations]:
    """Yield a client of the active controller at these addresses.

    The command ends where an address or a file cannot be used, no controller answers, or it does not know a name.
    """
    problems = []
    for address in addresses:
        try:
            check_address(address)
        except ValueError as error:
            problems.append(str(error).replace("address:", "--controller:", 1))
    if problems:
        refuse(*problems)
    try:
        credentials = Credentials.from_environment(**shown._asdict())
        operations = Operations(addresses, credentials)
    except ValueError as error:
        refuse(str(error))
    try:
        with operations:
            yield operations
    except UnknownNameError as error:
        refuse(str(error))
    except OperationsError as error:
        fail(str(error))
