"""``trainyard withdraw``: jobs are taken out of a controller's database, for example when their hosts are no more."""

import asyncio
from typing import Annotated

import typer

from controller.errors import StoreError
from trainyard.cli.exits import fail, refuse

JobsArgument = Annotated[list[str], typer.Argument(metavar="JOB...", help="Jobs to withdraw: all of them, or none.")]
DatabaseOption = Annotated[
    str,
    typer.Option(
        "--database", metavar="URL", help="Database on which no controller runs: a path, or an SQLAlchemy URL."
    ),
]


def withdraw(jobs: JobsArgument, database: DatabaseOption) -> None:
    """Withdraw jobs from the database of a controller that does not run."""
    # The store brings SQLAlchemy and gRPC, which --help and bad options do not wait for.
    from controller.store.database import Database
    from controller.store.migration import Access
    from controller.store.withdrawal import NothingWithdrawnError, withdraw_jobs

    try:
        opened = Database.open(database, Access.WRITE)
    except StoreError as error:
        refuse(str(error))
    try:
        withdrawn = asyncio.run(withdraw_jobs(opened, list(dict.fromkeys(jobs))))
    except NothingWithdrawnError as error:
        refuse(str(error))
    except StoreError as error:
        fail(str(error))
    finally:
        opened.close()
    for name, num_groups in withdrawn.items():
        typer.echo(f"withdrawn: job {name!r} with {num_groups:,} flow groups")
