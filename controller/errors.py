"""What goes wrong with a database, told apart from the library that speaks to it: that takes a while to import."""


class StoreError(Exception):
    """A database that cannot be used, or has not taken what it was given; the message names it."""


class UnknownOutcomeError(StoreError):
    """The database has not said whether it has taken what it was given; it may yet."""


class OutOfTermError(StoreError):
    """Another controller leads by now; the database itself is well."""
