"""The registry finds policies of installed distributions by name, and any other by an import string."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from policies import Policy, PolicyError, Snapshot, decide, find_policy, load_policy, policy_names, registry
from policies.registry import PolicySource, as_policy, registrations, source_of
from tests.policies.builders import GBPS, make_links

MODULE = """
from policies import Plan, Policy, Snapshot, find_policy

def decide(snapshot: Snapshot) -> Plan:
    return Plan("", (), {})

POLICY = Policy("idle", "decides nothing", decide)
ECMP = find_policy("ecmp")
NUMBER = 3
class Inside:
    POLICY = POLICY
"""

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs a distribution of this name that registers policies, given as in ``pyproject.toml``."""
    (tmp_path / "others_policies.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    caches = registry._entry_points, registry._registered

    def add(distribution: str, **policies: str) -> None:
        info = tmp_path / f"{distribution}-1.5.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.5\n")
        lines = (f"{name} = {value}\n" for name, value in policies.items())
        (info / "entry_points.txt").write_text("[trainyard.policies]\n" + "".join(lines))
        for cache in caches:
            cache.cache_clear()

    yield add
    sys.modules.pop("others_policies", None)
    for cache in caches:
        cache.cache_clear()


def test_our_own_policies_are_registered_as_those_of_others() -> None:
    ours = [of.name for of in registrations() if of.distribution == f"trainyard {version('trainyard')}"]
    assert {"cassini", "crux", "crux-pa", "crux-ps-pa", "echelonflow", "ecmp", "fifo"} <= set(ours)
    assert {"sincronia", "taccl-star", "trainyard", "varys"} <= set(ours)
    assert {find_policy(name).name for name in ours} == set(ours)


def test_a_policy_of_another_distribution_is_found_by_name(install: Install) -> None:
    install("others", idle="others_policies:POLICY")
    assert "idle" in policy_names()
    assert ("idle", "others 1.5", "others_policies:POLICY") in registrations()
    assert "others_policies" not in sys.modules, "names alone import nothing"
    policy = find_policy("idle")
    assert decide(policy, Snapshot(0.0, make_links(GBPS), ())).policy == "idle"
    assert source_of(policy) == "idle"


def test_a_name_that_two_distributions_claim_is_refused_with_both(install: Install) -> None:
    install("others", idle="others_policies:POLICY", crux="others_policies:POLICY")
    install("more", idle="others_policies:ECMP")
    with pytest.raises(PolicyError, match=r"'idle' is registered twice: by more 1\.5 .*ECMP.* and others 1\.5 "):
        find_policy("idle")
    with pytest.raises(PolicyError, match=r"'crux' is registered twice: by others 1\.5 .* and trainyard "):
        find_policy("crux")
    assert find_policy("ecmp").name == "ecmp"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("others_policies:NUMBER", r"'broken' of others 1\.5 \(others_policies:NUMBER\) is a int, expected a"),
        ("others_policies:MISSING", "cannot be loaded: AttributeError"),
        ("no_such_module:POLICY", "cannot be loaded: ModuleNotFoundError"),
        ("others_policies:POLICY", "calls itself 'idle'"),
    ],
)
def test_a_registration_that_leads_nowhere_is_refused_when_it_is_used(
    install: Install, value: str, message: str
) -> None:
    install("others", broken=value)
    assert "broken" in policy_names()
    with pytest.raises(PolicyError, match=message):
        find_policy("broken")


def test_an_import_string_is_imported_only_where_that_is_asked_for(install: Install) -> None:
    install("others")
    with pytest.raises(PolicyError, match="names code to import"):
        find_policy("others_policies:POLICY")
    with pytest.raises(PolicyError, match="names code to import"):
        as_policy("others_policies:POLICY")
    assert TypeAdapter(PolicySource).validate_python("others_policies:POLICY") == "others_policies:POLICY"
    assert "others_policies" not in sys.modules
    policy = load_policy("others_policies:POLICY")
    assert (policy.name, source_of(policy)) == ("idle", "others_policies:POLICY")
    assert load_policy("others_policies:Inside.POLICY") == policy
    assert load_policy("crux") is find_policy("crux")


@pytest.mark.parametrize(
    "name", ["others_policies:NUMBER", "others_policies:MISSING", "no_such_module:POLICY", "a b:c"]
)
def test_an_import_string_that_names_no_policy_is_refused(install: Install, name: str) -> None:
    install("others")
    with pytest.raises(PolicyError):
        load_policy(name)


def test_an_unknown_name_lists_those_that_exist() -> None:
    expected = f"unknown policy 'magic': expected one of {', '.join(policy_names())}, or module:attribute"
    for find in (find_policy, load_policy, as_policy):
        with pytest.raises(ValueError, match=expected):
            find("magic")
    with pytest.raises(ValidationError, match=f"expected one of {', '.join(policy_names())}"):
        TypeAdapter(PolicySource).validate_python("magic")


def test_a_policy_that_nobody_else_can_load_has_no_source() -> None:
    crux = find_policy("crux")
    other = Policy("crux", "another that calls itself so", lambda snapshot: crux.decide(snapshot))
    assert as_policy(other) is other
    assert source_of(crux) == "crux"
    with pytest.raises(PolicyError, match=r"policy 'crux'.* cannot load it"):
        source_of(other)


def test_a_module_that_exits_is_a_policy_that_cannot_be_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "exits.py").write_text("import sys; sys.exit(7)")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(PolicyError, match="SystemExit: 7"):
        load_policy("exits:POLICY")


def test_a_changed_copy_is_not_what_other_processes_would_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "copied.py").write_text("from policies.registry import find_policy\nPOLICY = find_policy('crux')\n")
    monkeypatch.syspath_prepend(tmp_path)
    loaded = load_policy("copied:POLICY")
    assert source_of(loaded) == "copied:POLICY"
    with pytest.raises(PolicyError, match="other processes cannot load it"):
        source_of(replace(loaded, name="other", decide=find_policy("ecmp").decide))
