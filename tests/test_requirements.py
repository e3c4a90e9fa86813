"""The list of what is promised names tests that exist, and every reported fault has one or a reason."""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from pathlib import Path

import pytest

from tests.requirements import RULES
from tests.requirements_cases import CASES, KINDS

TESTS = Path(__file__).parent
REASON = re.compile(r"(not yet|does not apply): .{3,}")
PROOFS = {
    **{name: proofs for name, (_, proofs) in RULES.items()},
    **{f"kind {name}": proofs for name, proofs in KINDS.items()},
    **{f"case {name}": proofs for name, proofs in CASES.items()},
}


@cache
def names_in(file: Path) -> frozenset[str]:
    """Tests of a file, and the names that it gives to machines of tests; read, not run."""
    tree = ast.parse(file.read_text("utf-8"))
    found = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return frozenset(name for name in found if name.lower().startswith("test"))


def wrong_with(proof: str) -> str:
    """What is wrong with a proof; empty where nothing is."""
    if REASON.fullmatch(proof):
        return ""
    file, parted, name = proof.partition("::")
    if not parted:
        return "neither a test nor a reason"
    if not (TESTS / file).is_file():
        return "no such file"
    return "" if name in names_in(TESTS / file) else "no such test"


def test_every_proof_is_a_test_that_exists_or_a_reason() -> None:
    wrong = {(name, proof): wrong_with(proof) for name, proofs in PROOFS.items() for proof in proofs}
    assert {place: what for place, what in wrong.items() if what} == {}


def test_nothing_is_without_a_proof_and_a_reason_stands_alone() -> None:
    for name, proofs in PROOFS.items():
        assert proofs, name
        reasons = [proof for proof in proofs if REASON.fullmatch(proof)]
        assert not reasons or len(proofs) == 1 or name.startswith("kind "), name


@pytest.mark.parametrize(
    ("proof", "what"),
    [
        ("test_requirements.py::test_that_nobody_wrote", "no such test"),
        ("no_folder/test_nothing.py::test_x", "no such file"),
        ("some words", "neither a test nor a reason"),
        ("not yet: ", "neither a test nor a reason"),
        ("not yet: other transcript formats", ""),
        ("test_requirements.py::test_every_proof_is_a_test_that_exists_or_a_reason", ""),
    ],
)
def test_a_proof_that_is_none_is_found(proof: str, what: str) -> None:
    assert wrong_with(proof) == what


def test_rules_are_numbered_by_area_without_gaps_and_short() -> None:
    numbers: dict[int, list[int]] = {}
    for name, (text, _) in RULES.items():
        area, number = re.fullmatch(r"R(\d+)\.(\d+)", name).groups()  # type: ignore[union-attr]
        numbers.setdefault(int(area), []).append(int(number))
        assert 10 < len(text) <= 90, name
    assert list(numbers) == list(range(1, 14))
    assert all(found == list(range(1, len(found) + 1)) for found in numbers.values())


def test_every_reported_fault_and_every_kind_has_its_line(shared: Path) -> None:
    lines = (shared / "cases" / "cases.jsonl").read_text("utf-8").split("\n")
    cases = [json.loads(line) for line in lines if line]
    kinds = re.findall(r"^### (\w+) - ", (shared / "cases" / "KINDS.md").read_text("utf-8"), re.MULTILINE)
    assert set(CASES) == {case["id"] for case in cases}
    assert set(KINDS) == set(kinds) == {case["kind"] for case in cases}
