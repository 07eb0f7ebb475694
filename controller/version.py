"""The version of the distribution that runs."""

from importlib.metadata import PackageNotFoundError, version


def installed_version() -> str:
    """The version of Trainyard; ``unknown`` where its code runs without having been installed."""
    try:
        return version("trainyard")
    except PackageNotFoundError:
        return "unknown"
