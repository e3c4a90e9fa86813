"""What docs/licences.md says of the packages that are installed along is what they say themselves."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| ([\w.-]+) \| ([\w.-]+) \|", re.MULTILINE)


def stated() -> dict[str, str]:
    """Package and licence of the page's first table."""
    page = (ROOT / "docs" / "licences.md").read_text(encoding="utf-8")
    first_table = page.split("| extra |")[0]
    return {name: licence for name, licence in ROW.findall(first_table) if name not in ("package", "---")}


def test_each_dependency_stands_there_and_nothing_else() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {re.split(r"[^\w.-]", item)[0] for item in project["dependencies"]}
    assert stated().keys() == needed


def test_the_licence_is_the_one_that_the_package_states() -> None:
    for name, licence in stated().items():
        found = metadata.metadata(name)
        fields = ("License-Expression", "License", "Classifier")
        own = " ".join(text for field in fields for text in found.get_all(field) or ())
        assert re.search(rf"\b{licence.removesuffix('-3-Clause')}\b", own), (name, own)
