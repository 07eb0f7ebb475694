"""``trainyard withdraw``: an operator ends jobs, for example squatters, or jobs whose hosts are no more."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from controller.errors import StoreError
from topologies.printable import printable
from trainyard.cli.connecting import ControllerAccess, asks_controller
from trainyard.cli.exits import fail, refuse

JobsArgument = Annotated[list[str], typer.Argument(metavar="JOB...", help="Jobs to withdraw: all of them, or none.")]
DatabaseOption = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="URL",
        help="Withdraw them from this database, on which no controller runs: a path, or an SQLAlchemy URL.",
    ),
]


@asks_controller
def withdraw(
    controller: ControllerAccess,
    jobs: JobsArgument,
    database: DatabaseOption = None,
) -> None:
    """Withdraw jobs from a running controller, or from the database of one that does not run."""
    if database is not None:
        withdrawn = _from_database(jobs, database)
    else:
        with controller.connect() as operations:
            withdrawn = operations.withdraw(jobs)
    for name, num_groups in withdrawn.items():
        groups = "1 flow group" if num_groups == 1 else f"{num_groups:,} flow groups"
        typer.echo(f"withdrawn: job {printable(repr(name))} with {groups}")


def _from_database(jobs: Sequence[str], database: str) -> Mapping[str, int]:
    # The store brings SQLAlchemy and gRPC, which --help and bad options do not wait for.
    from controller.store.database import Database
    from controller.store.migration import Access
    from controller.store.offline import InUseError
    from controller.store.withdrawal import NothingWithdrawnError, withdraw_jobs

    try:
        opened = Database.open(database, Access.WRITE)
    except StoreError as error:
        refuse(str(error))
    try:
        return asyncio.run(withdraw_jobs(opened, list(dict.fromkeys(jobs))))
    except (InUseError, NothingWithdrawnError) as error:
        refuse(str(error))
    except StoreError as error:
        fail(str(error))
    finally:
        opened.close()
