"""The lease of a controller that shares its database with no other, and keeps off one on which another leads."""

import asyncio
import logging

from controller.errors import StoreError
from controller.leadership.leadership import LeaseTable
from controller.leadership.lease import OBSERVE_SHARE, LeaseObserver, LeaseRecord

_LOG = logging.getLogger(__name__)


async def acquire_term(table: LeaseTable, name: str) -> int:
    """Take the lease for good, and return its term.

    The lease has no length, so that nobody has to wait for it to end: the same controller leads at once when it is
    restarted, and so does one with a ``leadership:`` configuration, which ends this term.

    Where a controller with such a configuration led last and has not given the lease back, it has the length of that
    lease to renew it.

    Raises:
        StoreError: Another controller leads on the database, or the database cannot be used.
    """
    loop = asyncio.get_running_loop()
    observer = LeaseObserver(await table.read(), loop.time())
    if observer.record.lease_s:
        _LOG.warning("waiting %g s to see whether %s still leads", observer.record.lease_s, observer.record.holder)
    while observer.record.lease_s and not observer.may_take:
        await asyncio.sleep(OBSERVE_SHARE * observer.record.lease_s)
        seen = observer.record
        observer = observer.observe(await table.read(), loop.time())
        if observer.record != seen and observer.record.lease_s:
            raise StoreError(
                f"{observer.record.holder!r} leads on the database, in term {observer.record.term}: to share it takes"
                " `leadership:` here too"
            )
    term = observer.record.term + 1
    if not await table.take(observer.record, LeaseRecord(name, term, 0, 0.0)):
        raise StoreError("another controller has just begun on the database")
    return term
