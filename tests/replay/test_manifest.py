"""Case R05: what may change between two runs of one folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.errors import InputError
from evalkit.replay import FREE_FIELDS, Ledger, keep_manifest
from evalkit.replay.manifest import changes

scalars = st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from([0.5, 1.0]) | st.text(max_size=3)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", min_size=1), inner),
    max_leaves=6,
)
manifests = st.dictionaries(st.sampled_from(["models", "prompt_sha256", "concurrency", "samples"]), values)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "ledger.sqlite") as opened:
        yield opened


@pytest.fixture
def case(shared: Path) -> dict[str, dict[str, Any]]:
    folder = shared / "cases/R05-resume-config-mismatch"
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")}


def test_a_new_concurrency_goes_on_and_is_noted(ledger: Ledger, case: dict[str, Any]) -> None:
    keep_manifest(ledger, case["manifest"])
    found = keep_manifest(ledger, case["new_concurrency"])
    assert [(c.field, c.old, c.new) for c in found] == [("concurrency", 16, 2), ("request_timeout_s", 60, 120)]
    assert ledger.manifest()["concurrency"] == 2
    assert [value for _, field, value in ledger.manifest_history() if field == "concurrency"] == [16, 2]


@pytest.mark.parametrize(("name", "field", "new"), [("new_prompt", 0, "cc33"), ("new_labels", 1, "dd44")])
def test_what_changes_answers_stops_with_both_values(
    ledger: Ledger, case: dict[str, Any], name: str, field: int, new: str
) -> None:
    keep_manifest(ledger, case["manifest"])
    before = ledger.manifest_history()
    with pytest.raises(InputError) as caught:
        keep_manifest(ledger, case[name])
    [message] = str(caught.value).splitlines()
    for token in [*case["expect"]["message_must_contain"][field], new, "restore", "new run folder"]:
        assert token in message
    assert ledger.manifest_history() == before


def test_labels_that_changed_offer_to_grade_anew(ledger: Ledger, case: dict[str, Any]) -> None:
    keep_manifest(ledger, case["manifest"])
    with pytest.raises(InputError, match="grading them anew calls no model"):
        keep_manifest(ledger, case["new_labels"])


def test_every_change_is_named_at_once_and_inside_a_field(ledger: Ledger) -> None:
    keep_manifest(ledger, {"models": {"mid": "demo/mid", "top": "demo/top"}, "temperature": 0, "samples": 1})
    with pytest.raises(InputError) as caught:
        keep_manifest(ledger, {"models": {"mid": "demo/new"}, "temperature": 0.5, "samples": 3})
    assert [fault.field for fault in caught.value.faults] == ["models.mid", "models.top", "temperature"]


def test_hostile_names_and_values_stay_on_one_line(ledger: Ledger) -> None:
    keep_manifest(ledger, {"prompt": "a\x1b[2Jb\nc"})
    with pytest.raises(InputError) as caught:
        keep_manifest(ledger, {"prompt": "x" * 10_000, "\x1b]0;name": 1})
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value).splitlines()) == 2
    assert len(str(caught.value)) < 2000


@given(manifests)
def test_the_same_study_read_twice_never_differs(manifest: dict[str, Any]) -> None:
    turned = dict(reversed(list(manifest.items())))
    assert changes(manifest, turned) == ()
    assert changes(manifest, json.loads(json.dumps(turned))) == ()
    assert changes(manifest, {**manifest, "default": None}) == ()


@given(manifests, manifests)
def test_changes_are_found_from_both_sides(one: dict[str, Any], two: dict[str, Any]) -> None:
    there, back = changes(one, two), changes(two, one)
    assert [(c.field, c.old, c.new) for c in there] == [(c.field, c.new, c.old) for c in back]
    assert all(c.free == (c.field.partition(".")[0] in FREE_FIELDS) for c in there)


def test_numbers_are_equal_by_value_and_truth_is_no_number() -> None:
    assert changes({"t": 1}, {"t": 1.0}) == ()
    assert changes({"t": [0, 1]}, {"t": [0.0, 1.0]}) == ()
    assert len(changes({"t": 1}, {"t": True})) == 1
    assert len(changes({"t": 0}, {})) == 1
    assert len(changes({"t": "1"}, {"t": 1})) == 1
