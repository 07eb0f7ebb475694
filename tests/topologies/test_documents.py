from pathlib import Path

import pytest

from topologies.documents import DocumentError, parse_document, parse_values, read_configuration, read_document
from topologies.problems import Problem


@pytest.mark.parametrize(
    ("text", "contents"),
    [
        ("", None),
        ("a: [1, 2.5e3, yes, ~, x]", {"a": [1, 2500.0, True, None, "x"]}),
        ("day: 2026-01-31", {"day": "2026-01-31"}),
        ("a: !!str 5", {"a": "5"}),
        ("a: &one {b: 1}\nc: *one", {"a": {"b": 1}, "c": {"b": 1}}),
        ("a: &one {b: 1, c: 2}\nd: {<<: *one, c: 3}", {"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}}),
        ("a: {<<: [{b: 1}, {b: 2, c: 2}]}", {"a": {"b": 1, "c": 2}}),
        ('a: "two\\nlines"', {"a": "two\nlines"}),
    ],
)
def test_what_configurations_need_is_read(text: str, contents: object) -> None:
    assert parse_document(text) == (contents, [])


_NINES = ", ".join(["*a"] * 9)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: !!binary aGk=", "line 1, column 4: the tag tag:yaml.org,2002:binary is not supported"),
        ("a: !!set {x}", "line 1, column 4: the tag tag:yaml.org,2002:set is not supported"),
        ("a: !!timestamp 2026-01-31", "line 1, column 4: the tag tag:yaml.org,2002:timestamp is not supported"),
        ("a: !!python/name:os.system x", "line 1, column 4: the tag tag:yaml.org,2002:python/name:os.system is"),
        ("a: !!int ''", "line 1, column 4: expected int, got ''"),
        ("a: !!bool maybe", "line 1, column 4: expected bool, got 'maybe'"),
        ("a: " + "9" * 5000, "line 1, column 4: expected a number of at most 100 characters, got 5,000"),
        ("a: " + "1:" * 5000 + "1", "line 1, column 4: expected a number of at most 100 characters, got 10,001"),
        ('a: "\\e[31m"', "line 1, column 4: expected text without control characters, got '\\x1b' in it"),
        ('"\\e[31m": a', "line 1, column 1: expected text without control characters, got '\\x1b' in it"),
        ('a: "\\0"', "line 1, column 4: expected text without control characters, got '\\x00' in it"),
        ("a: \0", "invalid YAML: unacceptable character #x0000"),
        ('a: "\\ud800"', "line 1, column 7: invalid YAML: "),
        ("a: \ud800", "invalid YAML: expected text, got a lone surrogate"),
        ("[a]: b", "line 1, column 1: expected text as a key; quote it"),
        ("[" * 200, "line 1, column 102: expected at most 100 levels of nesting"),
        ("- " * 200, "line 1, column 203: expected at most 100 levels of nesting"),
        ("a: &a [*a]", "line 1, column 8: the alias *a stands for nothing that ends before it"),
        ("a: *b", "line 1, column 4: the alias *b stands for nothing that ends before it"),
        ("a: {<<: 3}", "line 1, column 9: expected mappings to merge"),
        ("a: 1\n---\nb: 2", "line 2, column 1: expected a single document, another begins here"),
        ("a: &a [" + "x, " * 9 + "]\n" + "".join(f"{n}: &a [{_NINES}]\n" for n in "bcdefgh"), "line 7, column "),
        ("[" + "a," * 1_000_001 + "]", "line 1, column 2000000: expected at most 1,000,000 values"),
        ("a: &" + "b" * 100_000 + " *c", "line 1, column "),
        ("a: !" + "b" * 100_000 + " c", "line 1, column 4: the tag !bbbbb"),
    ],
)
def test_what_would_fail_or_cost_much_is_refused_in_a_short_line(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=r"^(line \d+, column \d+: |invalid YAML: )") as caught:
        parse_document(text)
    assert str(caught.value).startswith(problem)
    assert len(str(caught.value)) < 500
    assert str(caught.value).isprintable()


def test_repeated_and_other_keys_are_problems_with_path_and_line() -> None:
    _, problems = parse_document("a:\n- b: 1\n  b: 2\n3: c\nnull: d\n")
    assert [str(problem) for problem in problems] == [
        "a[0].b: expected once, repeated in line 3",
        "3: expected text as a key; quote it",
        "null: expected text as a key; quote it",
    ]


def test_long_keys_are_cut_in_problems() -> None:
    key = "k" * 10_000
    _, (problem,) = parse_document(f"? {key}\n: 1\n? {key}\n: 2\n")
    assert str(problem) == f"{'k' * 279}… (10,000 characters): expected once, repeated in line 3"


def test_values_are_those_of_a_document() -> None:
    assert parse_values("1e9,[a, b],x") == [1e9, ["a", "b"], "x"]
    for text in ("{", "!!binary aGk=", "\udcff", "a], [b"):
        with pytest.raises(ValueError, match="not YAML values"):
            parse_values(text)


def test_messages_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "bad\x1b.yaml"
    path.write_bytes(b"\xff")
    shown = str(path).replace("\x1b", "\\x1b")
    with pytest.raises(DocumentError) as caught:
        read_document(path)
    assert caught.value.messages == (f"{shown}: is not a text file",)
    path.write_text("a: [")
    with pytest.raises(DocumentError) as caught:
        read_document(path)
    assert caught.value.messages[0].startswith(f"{shown}: line 2, column 1: invalid YAML: ")
    with pytest.raises(DocumentError, match="/dev/zero: cannot be read: expected a regular file or a pipe"):
        read_document(Path("/dev/zero"))


_FABRIC = "topology: {kind: star, hosts: 2, host_link_gbps: 1}\n"


def test_a_topology_may_be_the_name_of_a_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "racks").mkdir()
    (tmp_path / "racks/one.yaml").write_text(_FABRIC)
    path = tmp_path / "scenario.yaml"
    path.write_text("name: x\ntopology: racks/one.yaml\n")
    document = read_configuration(path)
    assert document.contents == {"name": "x", "topology": {"kind": "star", "hosts": 2, "host_link_gbps": 1}}
    assert document.messages([Problem(("name",), "no"), Problem(("topology", "hosts"), "no")]) == (
        f"{path}: name: no",
        f"{tmp_path}/racks/one.yaml: topology.hosts: no",
    )
    (tmp_path / "racks/one.yaml").write_text(f"{_FABRIC}# Another rack.\n")
    assert read_configuration(path).sha256 != document.sha256


@pytest.mark.parametrize(
    ("named", "messages"),
    [
        (
            None,
            ["{scenario}: topology: expected a mapping or a file; {fabric}: cannot be read: No such file or direct"],
        ),
        ("topology: [", ["{fabric}: line 2, column 1: invalid YAML: "]),
        ("topology: fabric.yaml", ["{fabric}: topology: expected the topology itself, not the name of a further file"]),
        ("- 1", ["{fabric}: expected a mapping with the key topology"]),
        (
            "name: x\njobs: []",
            [
                "{fabric}: topology: missing; this key is required",
                "{fabric}: name: unknown key; expected topology alone",
                "{fabric}: jobs: unknown key; expected topology alone",
            ],
        ),
    ],
    ids=["no file", "no YAML", "a further name", "no mapping", "a scenario"],
)
def test_a_named_file_that_holds_no_topology_is_refused(named: str | None, messages: list[str], tmp_path: Path) -> None:
    scenario, fabric = tmp_path / "scenario.yaml", tmp_path / "fabric.yaml"
    scenario.write_text("topology: fabric.yaml")
    if named is not None:
        fabric.write_text(named)
    with pytest.raises(DocumentError) as caught:
        read_configuration(scenario)
    expected = [message.format(scenario=scenario, fabric=fabric) for message in messages]
    assert len(caught.value.messages) == len(expected)
    for message, beginning in zip(caught.value.messages, expected, strict=True):
        assert message.startswith(beginning)


def test_a_file_that_names_itself_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "loop.yaml"
    path.write_text("topology: loop.yaml")
    with pytest.raises(DocumentError, match="expected the topology itself"):
        read_configuration(path)
