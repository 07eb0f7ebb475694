"""A controller that takes no turns with others: it keeps off a database on which one leads."""

import asyncio
import logging

from controller.errors import StoreError
from controller.leadership.leadership import LeaseTable
from controller.leadership.lease import LOOK_SHARE, LeaseRecord, Watch

_LOG = logging.getLogger(__name__)


async def own_term(table: LeaseTable, name: str) -> int:
    """The term in which a controller of this name has a database for itself, until another takes it.

    One that led and has not said that it leaves is given its lease to be heard of. Raises StoreError where it is.
    """
    loop = asyncio.get_running_loop()
    watch = Watch(await table.read(), loop.time())
    if watch.record.lease_s:
        _LOG.warning("looking for %g s whether %s still leads", watch.record.lease_s, watch.record.holder)
    while watch.record.lease_s and not watch.may_take:
        await asyncio.sleep(LOOK_SHARE * watch.record.lease_s)
        seen = watch.record
        watch = watch.look(await table.read(), loop.time())
        if watch.record != seen and watch.record.lease_s:
            raise StoreError(
                f"{watch.record.holder!r} leads on the database, in term {watch.record.term}: to share it takes"
                " `leadership:` here too"
            )
    term = watch.record.term + 1
    # A lease of no length: whoever takes turns may lead at once, and then nothing more is written in this term.
    if not await table.take(watch.record, LeaseRecord(name, term, 0, 0.0)):
        raise StoreError("another controller has just begun on the database")
    return term
