"""Finds policies: registered ones by name, and any other by ``module:attribute``.

A distribution registers a policy by an entry point of the group ``trainyard.policies``; Trainyard registers its own the
same way. Listing the names imports none of the policies.

Loading ``module:attribute`` runs the code of that module. Only ``load_policy`` does it, for what the user has typed or
configured. Names from a file that somebody else may have written go through ``find_policy``.
"""

import re
import sys
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Annotated, NamedTuple

from pydantic import AfterValidator

if TYPE_CHECKING:
    # Policies import NumPy and SciPy, which listing names does not need.
    from importlib.metadata import EntryPoint

    from policies.policy import Policy

GROUP = "trainyard.policies"
DEFAULT_POLICY = "crux"
"""The policy that decides where none is named."""

_REFERENCE = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*(?:\.[^\W\d]\w*)*")


class PolicyError(ValueError):
    """A policy cannot be found or loaded; the message says why."""


class Registration(NamedTuple):
    """A registered policy.

    Attributes:
        name: Its name.
        distribution: The distribution that registers it, with its version.
        reference: ``module:attribute``.
    """

    name: str
    distribution: str
    reference: str


def policy_names() -> tuple[str, ...]:
    """Return the names of the registered policies in alphabetical order."""
    return tuple(_entry_points())


def registrations() -> list[Registration]:
    """Return all registrations by name. A name occurs twice where two distributions claim it."""
    return [
        Registration(name, _distribution(entry), entry.value)
        for name, entries in _entry_points().items()
        for entry in entries
    ]


def find_policy(name: str) -> "Policy":
    """Return the registered policy of this name; imports no other code.

    Raises:
        PolicyError: There is none, two distributions claim the name, or it cannot be loaded.
    """
    if is_import_string(name):
        raise PolicyError(f"{name!r} names code to import, where only registered policies may be named")
    return _registered(name)


def load_policy(name: str) -> "Policy":
    """Return the registered policy of this name, or the one that ``module:attribute`` names.

    An import searches the working directory too.

    Raises:
        PolicyError: As for ``find_policy``; or the module cannot be imported, or the attribute is not a Policy.
    """
    return _imported(name) if is_import_string(name) else _registered(name)


def as_policy(policy: "Policy | str") -> "Policy":
    """Return the policy itself, or the registered one of this name. Raises PolicyError as ``find_policy``."""
    return find_policy(policy) if isinstance(policy, str) else policy


def source_of(policy: "Policy") -> str:
    """Return the name or ``module:attribute`` by which another process loads a policy.

    Raises:
        PolicyError: Another process cannot load it.
    """
    if policy.source is not None and load_policy(policy.source) == policy:
        return policy.source
    if policy.name in policy_names() and find_policy(policy.name) == policy:
        return policy.name
    raise PolicyError(
        f"policy {policy.name!r}: other processes cannot load it; expected a policy that is registered, or that"
        " load_policy has loaded from module:attribute"
    )


def is_import_string(name: str) -> bool:
    """Return whether this has the form ``module:attribute``."""
    return ":" in name


def check_source(name: str) -> str:
    """Return the name of a registered policy, or an import string without importing it.

    Raises:
        PolicyError: It is neither.
    """
    if is_import_string(name):
        if not _REFERENCE.fullmatch(name):
            raise PolicyError("expected module:attribute")
    elif name not in _entry_points():
        raise PolicyError(_expected())
    return name


PolicySource = Annotated[str, AfterValidator(check_source)]
"""The name of a registered policy, or ``module:attribute``."""


@cache
def _entry_points() -> "dict[str, list[EntryPoint]]":
    from importlib.metadata import entry_points

    found: dict[str, list[EntryPoint]] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, _distribution(entry))):
        found.setdefault(entry.name, []).append(entry)
    return found


@cache
def _registered(name: str) -> "Policy":
    entries = _entry_points().get(name, [])
    if not entries:
        raise PolicyError(_unknown(name))
    if len(entries) > 1:
        claims = " and ".join(f"{_distribution(entry)} ({entry.value})" for entry in entries)
        raise PolicyError(f"policy {name!r} is registered twice: by {claims}; uninstall one of them")
    (entry,) = entries
    where = f"policy {name!r} of {_distribution(entry)} ({entry.value})"
    try:
        loaded = entry.load()
    except (Exception, SystemExit) as error:
        raise PolicyError(f"{where} cannot be loaded: {type(error).__name__}: {error}") from error
    policy = _checked(loaded, where)
    if policy.name != name:
        raise PolicyError(f"{where} calls itself {policy.name!r}")
    return policy


def _imported(reference: str) -> "Policy":
    from importlib import import_module

    check_source(reference)
    module, _, attributes = reference.partition(":")
    if "" not in sys.path:
        sys.path.append("")  # last, so that the working directory hides no installed module
    try:
        loaded: object = import_module(module)
        for attribute in attributes.split("."):
            loaded = getattr(loaded, attribute)
    except (Exception, SystemExit) as error:
        raise PolicyError(f"policy {reference!r} cannot be loaded: {type(error).__name__}: {error}") from error
    return replace(_checked(loaded, f"policy {reference!r}"), source=reference)


def _checked(loaded: object, where: str) -> "Policy":
    from policies.policy import Policy

    if not isinstance(loaded, Policy):
        raise PolicyError(f"{where} is a {type(loaded).__name__}, expected a policies.Policy")
    return loaded


def _unknown(name: str) -> str:
    return f"unknown policy {name!r}: {_expected()}"


def _expected() -> str:
    if not (names := policy_names()):
        return "no policy is registered; install Trainyard anew (make setup, or pip install)"
    return f"expected one of {', '.join(names)}, or module:attribute"


def _distribution(entry: "EntryPoint") -> str:
    return "an unknown distribution" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
