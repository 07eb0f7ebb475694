"""``trainyard certificates`` and ``trainyard token``: credentials for those who call a controller."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer
import yaml

from controller.access.identity import IdentityError, Role
from controller.access.tokens import new_token, token_entry
from topologies.printable import printable
from trainyard.cli.exits import fail, refuse

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_MOST_CHARACTERS = 100_000
"""Of a line on stdout, which may name many files."""

FolderArgument = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the files; made where there is none.")]
AddressOption = Annotated[
    list[str] | None,
    typer.Option("--address", metavar="HOST", help="A name or IP address of the controller, besides this machine's."),
]
JobOption = Annotated[
    list[str] | None, typer.Option("--job", metavar="TENANT", help="A certificate for the jobs of a tenant.")
]
AgentOption = Annotated[
    list[str] | None, typer.Option("--agent", metavar="HOST", help="A certificate for a host's agent.")
]
OperatorOption = Annotated[
    list[str] | None, typer.Option("--operator", metavar="NAME", help="A certificate for an operator.")
]
ViewerOption = Annotated[list[str] | None, typer.Option("--viewer", metavar="NAME", help="A certificate for a viewer.")]
SwitchOption = Annotated[
    list[str] | None,
    typer.Option("--switch", metavar="HOST", help="A certificate for a switch at this name or address."),
]
DaysOption = Annotated[int, typer.Option("--days", min=1, max=3650, help="How long new certificates hold.")]

NameOption = Annotated[str, typer.Option("--name", help="The name; of an agent, its host's.")]
RoleOption = Annotated[Role, typer.Option("--role", help="What the identity may do.")]
TenantOption = Annotated[str, typer.Option("--tenant", help="The tenant of jobs.")]
TokenDaysOption = Annotated[int | None, typer.Option("--days", min=1, help="How long it holds. Default: for ever.")]


def certificates(
    folder: FolderArgument,
    address: AddressOption = None,
    job: JobOption = None,
    agent: AgentOption = None,
    operator: OperatorOption = None,
    viewer: ViewerOption = None,
    switch: SwitchOption = None,
    days: DaysOption = 365,
) -> None:
    """Make a small certificate authority for a trial, and certificates that it signs."""
    # cryptography takes time to import.
    from controller.access.authority import Authority, AuthorityError

    clients = [
        *((f"operator-{name}", name, Role.OPERATOR, "") for name in operator or ()),
        *((f"viewer-{name}", name, Role.VIEWER, "") for name in viewer or ()),
        *((f"agent-{host}", host, Role.AGENT, "") for host in agent or ()),
        *((f"job-{tenant}", tenant, Role.JOB, tenant) for tenant in job or ()),
    ]
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        is_new = not (folder / "ca.pem").exists()
        authority = Authority.new(days) if is_new else Authority.read(folder)
        pairs = {}
        # The certificate of a controller that is there has the addresses by which it is called.
        if is_new or address or not (folder / "controller.pem").exists():
            pairs["controller"] = authority.server("controller", [*_LOOPBACK, *(address or ())], days)
        pairs |= {f"switch-{host}": authority.server(host, [host], days) for host in switch or ()}
        pairs |= {file: authority.client(name, role, tenant, days) for file, name, role, tenant in clients}
        if is_new:
            authority.pair.write(folder, "ca")
        for file, pair in pairs.items():
            pair.write(folder, file)
    except (IdentityError, AuthorityError) as error:
        refuse(str(error))
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}")
    wrote = f"# wrote {', '.join(pairs) or 'nothing'} to {folder}; keep ca.key safe. For controller.yaml:"
    print(printable(wrote, _MOST_CHARACTERS))
    files = {"certificate": "controller.pem", "key": "controller.key", "ca": "ca.pem"}
    tls = {"tls": {field: str(folder / name) for field, name in files.items()}}
    print(yaml.safe_dump(tls, default_flow_style=None, sort_keys=False, width=_MOST_CHARACTERS), end="")


def token(name: NameOption, role: RoleOption, tenant: TenantOption = "", days: TokenDaysOption = None) -> None:
    """Make a random token: print it on stderr, and its line for the controller's file of tokens on stdout."""
    secret = new_token()
    expires = None if days is None else datetime.now(UTC).replace(microsecond=0) + timedelta(days=days)
    try:
        entry = token_entry(secret, name, role, tenant, expires)
    except IdentityError as error:
        refuse(str(error))
    typer.echo(secret, err=True)
    print(f"- {entry}")
