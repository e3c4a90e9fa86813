"""Mutants of transcripts and of tool calls, for a moment; `python tests/fuzz/run.py --seconds 600` does it for longer."""

from __future__ import annotations

from pathlib import Path
from random import Random

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz import growing, importing, raw, tools, validating
from tests.fuzz.mutations import mutant
from tests.fuzz.reading import check_reading
from tests.fuzz.samples import samples
from tests.fuzz.shapes import misshapen

POOL = [data for of_one in samples().values() for data in of_one]
few = settings(max_examples=4, suppress_health_check=list(HealthCheck))
randoms = st.randoms(use_true_random=False)


@pytest.mark.parametrize("name", sorted(samples()))
async def test_a_sample_is_imported_and_sound(name: str):
    """What is mutated has to be something that is read: else its mutants would show nothing."""
    async with importing.opened() as service:
        outcome = await importing.check_import(service, samples()[name][0], Random(1), format_name="")
    assert outcome.code == ""
    assert outcome.records >= 4


@pytest.mark.parametrize("name", sorted(samples()))
@few
@given(chance=randoms, told=st.booleans())
def test_a_mutant_is_refused_clearly_or_stored_once_and_valid(name: str, chance: Random, told: bool):
    data = mutant(chance, samples()[name][0], POOL)
    check_reading(data)

    async def check() -> None:
        async with importing.opened() as service:
            await importing.check_import(service, data, chance, format_name=name if told else "")

    anyio.run(check)


@pytest.mark.parametrize("name", sorted(samples()))
@settings(few, max_examples=2)
@given(chance=randoms)
def test_a_transcript_that_grows_gives_what_it_gives_at_once(
    name: str, chance: Random, tmp_path_factory: pytest.TempPathFactory
):
    data = samples()[name][0]

    async def check() -> None:
        async with importing.opened() as service:
            await growing.check_growing(service, data, growing.cuts(chance, data), tmp_path_factory.getbasetemp())

    anyio.run(check)


@settings(few, max_examples=6)
@given(chance=randoms)
def test_any_row_of_tool_calls_is_answered_or_refused_by_a_code(
    chance: Random, tmp_path_factory: pytest.TempPathFactory
):
    folder: Path = tmp_path_factory.getbasetemp()

    async def check() -> None:
        async with tools.opened(folder) as bench:
            await tools.check_calls(bench, chance, 12)

    anyio.run(check)


def test_the_check_of_shapes_finds_what_no_provider_takes():
    call = {"type": "tool_use", "id": 5, "name": "x", "input": None}
    found = misshapen([{"role": "user", "content": [call, "text", {"type": None}]}, {"role": "tool", "content": 5}])
    assert len(found) == 7


@settings(few, max_examples=30)
@given(chance=randoms)
def test_any_list_is_checked_and_repaired_by_the_rules_of_every_provider(chance: Random):
    validating.check_validation(validating.mutant(chance))


@settings(few, max_examples=8)
@given(chance=randoms)
def test_a_changed_export_is_refused_or_taken_whole(chance: Random, tmp_path_factory: pytest.TempPathFactory):
    raw.check_raw(raw.mutant(chance), tmp_path_factory.getbasetemp())


def test_an_export_is_taken_as_it_was_written(tmp_path: Path):
    assert raw.check_raw(b"".join(raw.lines()), tmp_path) == ""
