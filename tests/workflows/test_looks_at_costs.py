"""Over three tiers costs aim the path, so that what they aim it by is a part of the look."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from evalkit.study.routing import read_study
from evalkit.workflows.route_sweep import look_at, read_inputs
from tests.workflows import test_label_audit_shapes as shapes

NOW = "2026-01-02T03:04:05Z"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shapes.TestOtherShapes().write(tmp_path)
    return tmp_path


def priced(folder: Path, usd: dict[str, str]) -> tuple[int, float | None]:
    """(number, delta) of the look with these costs of the mid tier by item; "" is unknown."""
    file = folder / "outcomes.csv"
    with file.open(encoding="utf-8", newline="") as opened:
        rows = list(csv.DictReader(opened))
    for row in rows:
        if row["tier"] == "mid":
            row["cost_usd"] = usd.get(row["id"], "0.004")
    with file.open("w", encoding="utf-8", newline="") as opened:
        out = csv.DictWriter(opened, list(rows[0]), lineterminator="\n")
        out.writeheader()
        out.writerows(rows)
    look = look_at(read_inputs(read_study(folder / "study.yaml")), NOW)
    return look.number, look.delta


def parted(folder: Path) -> tuple[list[str], list[str]]:
    """(ids of items that find the direction, ids of those that certify)."""
    inputs = read_inputs(read_study(folder / "study.yaml"))
    aims = inputs.assembled.data.direction
    assert aims is not None
    pairs = list(zip(inputs.labels.ids, aims, strict=True))
    return [name for name, aim in pairs if aim], [name for name, aim in pairs if not aim]


def test_costs_of_items_that_certify_are_the_same_look_and_of_those_that_aim_another(folder: Path) -> None:
    aiming, certifying = parted(folder)
    one = certifying[0]
    assert priced(folder, {one: ""}) == (1, pytest.approx(0.05))  # the path is aimed, though nothing can be chosen
    assert priced(folder, {one: "0.005"}) == (1, pytest.approx(0.05))
    assert priced(folder, {one: "0.009"}) == (1, pytest.approx(0.05))
    assert priced(folder, {one: "", aiming[0]: "0.019"}) == (2, None)


def test_the_first_costs_that_aim_complete_a_look_without(folder: Path) -> None:
    aiming, _ = parted(folder)
    assert priced(folder, {aiming[0]: ""}) == (1, pytest.approx(0.05))
    assert priced(folder, {aiming[0]: "", aiming[1]: "0.019"}) == (1, pytest.approx(0.05))  # aims at nothing yet
    assert priced(folder, {}) == (1, pytest.approx(0.05))
    assert priced(folder, {aiming[1]: "0.019"}) == (2, None)
