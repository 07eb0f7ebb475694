"""How commands reach a running controller: its addresses, and what they show it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import wraps
from inspect import Signature, signature
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from controller.api.operations.client import Operations, OperationsError, UnknownNameError
from hostlib.addresses import check_address
from hostlib.credentials import Credentials
from trainyard.cli.exits import fail, refuse
from trainyard.cli.options import DEFAULT_CONTROLLER, ControllerOption

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


@dataclass(frozen=True, slots=True)
class ControllerAccess:
    """The addresses of a controller, and what a command shows it."""

    addresses: Sequence[str]
    shown: Shown

    def connect(self, address: str | None = None) -> AbstractContextManager[Operations]:
        """Yield a client of the active controller, or of the one at one address; see ``connect_or_exit``."""
        return connect_or_exit(self.addresses if address is None else (address,), self.shown)


def asks_controller(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options by which it reaches a controller, as its parameter ``controller``.

    Example::

        @asks_controller
        def resume(controller: ControllerAccess) -> None:
            with controller.connect() as operations:
                operations.resume()
    """

    @wraps(command)
    def asking(**given: Any) -> None:
        shown = Shown(*(given.pop(name) for name in Shown._fields))
        command(**given | {"controller": ControllerAccess(given["controller"], shown)})

    own = [each for each in signature(command).parameters.values() if each.name != "controller"]
    asking.__signature__ = Signature([*own, *signature(_options).parameters.values()])  # type: ignore[attr-defined]
    return asking


def _options(
    controller: ControllerOption = DEFAULT_CONTROLLER,
    ca: CaOption = None,
    certificate: CertificateOption = None,
    key: KeyOption = None,
    token_file: TokenFileOption = None,
) -> None:
    """Nothing: its signature has the options."""


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
        fail(f"{error}{web_hint(str(error))}{tls_hint(str(error), credentials)}")


def web_hint(problem: str) -> str:
    """Return what the address may be where something answers there that does not speak gRPC."""
    if "Failed parsing HTTP/2" in problem or "missing selected ALPN property" in problem:
        return "; no gRPC is spoken there: commands need the address of `listen`, not that of the page"
    return ""


def tls_hint(problem: str, credentials: Credentials) -> str:
    """Return what a server with TLS may miss that ends a connection before it answers."""
    if "Socket closed" not in problem or credentials.certificate is not None:
        return ""
    if credentials.ca is None:
        return "; where TLS is on, it needs --ca, and --certificate and --key or --token-file"
    return "; it may ask for a certificate: --certificate and --key"
