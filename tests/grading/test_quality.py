"""How good a judge is: figures by hand, and nothing stated that is not known."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.grading.human import HumanGrades
from evalkit.grading.quality import JudgeQuality, judge_errors, judge_quality
from evalkit.statistics.bounds import wilson_interval
from evalkit.statistics.judge import rogan_gladen

Verdicts = dict[tuple[str, str, int], bool | None]


def study(
    both_pass: int, missed: int, false_pass: int, both_fail: int, only_judge: int = 0, judge_passes: int = 0
) -> tuple[Verdicts, HumanGrades]:
    """Items graded by both, then `only_judge` more that the judge alone saw, `judge_passes` of which it passes."""
    cells = [(True, True)] * both_pass + [(True, False)] * missed
    cells += [(False, True)] * false_pass + [(False, False)] * both_fail
    verdicts: Verdicts = {}
    graded = {}
    for i, (people, judge) in enumerate(cells):
        key = (f"i{i:04d}", "cheap", 0)
        verdicts[key] = judge
        graded[key] = {"": float(people)}
    for i in range(only_judge):
        verdicts[f"x{i:04d}", "cheap", 0] = i < judge_passes
    return verdicts, HumanGrades("grades.csv", graded)


def test_by_hand() -> None:
    """90 of 100 passes found, 194 of 200 failures cleared; the judge passes 100 of 1,000 in all."""
    verdicts, human = study(90, 10, 6, 194, only_judge=700, judge_passes=4)
    found = judge_quality(verdicts, human)
    assert (found.replies, found.judged, found.unparseable) == (1000, 1000, 0)
    assert found.confusion == ((90, 10, 0), (6, 194, 0))
    assert found.sensitivity == 0.9
    assert found.specificity == 0.97
    assert (found.agreement.agreed, found.agreement.n) == (284, 300)
    assert found.agreement.interval == wilson_interval(284, 300)
    assert found.pass_rate == 0.1
    assert found.pass_rate_corrected == pytest.approx((0.1 + 0.97 - 1) / (0.9 + 0.97 - 1))  # 0.0804597...
    expected = rogan_gladen(100, 1000, 90, 100, 194, 200)
    assert expected is not None
    assert found.pass_rate_corrected_interval == (expected.lower, expected.upper)
    assert "284 of 300" in found.sentence
    assert "94.7 %" in found.sentence
    assert "corrected for its errors 8.0 %" in found.sentence
    assert found.sentence.endswith("A judge is no gate by itself.")


def test_verdicts_that_are_missing_measure_nothing_but_themselves() -> None:
    verdicts, human = study(9, 1, 1, 9)
    verdicts["i0000", "cheap", 0] = None
    verdicts["i0019", "cheap", 0] = None
    found = judge_quality(verdicts, human)
    assert found.confusion == ((8, 1, 1), (1, 8, 1))
    assert (found.judged, found.unparseable, found.unparseable_share) == (18, 2, 0.1)
    assert (found.agreement.agreed, found.agreement.n) == (16, 18)


def test_by_risk_class() -> None:
    verdicts, human = study(4, 0, 2, 4)
    risks = {f"i{i:04d}": "critical" if i in {4, 5} else "low" for i in range(10)}
    found = judge_quality(verdicts, human, risks=risks | {"none": "mid"})
    assert {name: (one.agreed, one.n) for name, one in found.by_risk.items()} == {
        "critical": (0, 2),
        "low": (8, 8),
        "mid": (0, 0),
    }
    assert found.by_risk["mid"].rate is None
    assert "Least in risk class critical: 0 of 2" in found.sentence


@pytest.mark.parametrize(
    ("counts", "why"),
    [
        ((0, 0, 1, 5), "passed no reply"),
        ((5, 1, 0, 0), "failed no reply"),
        ((1, 5, 5, 1), "no better than chance"),
    ],
)
def test_a_corrected_rate_that_nobody_can_state(counts: tuple[int, int, int, int], why: str) -> None:
    found = judge_quality(*study(*counts))
    assert found.pass_rate_corrected is found.pass_rate_corrected_interval is None
    assert why in (found.missing or "")
    assert why in found.sentence


def test_without_grades_of_people() -> None:
    verdicts, _ = study(3, 0, 0, 3)
    found = judge_quality(verdicts, HumanGrades("g", {}))
    assert found.agreement.n == 0
    assert found.agreement.rate is found.agreement.interval is found.ac1 is found.sensitivity is None
    assert "not known" in found.sentence
    assert judge_quality({}, HumanGrades("g", {})).unparseable_share is None


def test_people_who_split_or_disagree() -> None:
    verdicts: Verdicts = {(f"i{i}", "c", 0): True for i in range(3)}
    grades = {
        ("i0", "c", 0): {"p": 1.0, "q": 0.0},
        ("i1", "c", 0): {"p": 1.0, "q": 1.0},
        ("i2", "c", 0): {"p": 0.0, "q": 0.0},
    }
    found = judge_quality(verdicts, HumanGrades("g", grades))
    assert (found.people_split, found.agreement.n, found.agreement.agreed) == (1, 2, 1)
    assert found.people_agreement == pytest.approx(2 / 3)
    assert "evenly split on 1" in found.sentence


def test_several_replies_of_one_item_are_said_to_be() -> None:
    verdicts: Verdicts = {("i0", "c", sample): True for sample in range(4)}
    human = HumanGrades("g", {("i0", "c", sample): {"": 1.0} for sample in range(4)})
    assert "4 replies are of 1 item and" in judge_quality(verdicts, human).sentence


@given(
    counts=st.tuples(*[st.integers(0, 6)] * 4),
    missing=st.sets(st.integers(0, 23), max_size=5),
    extra=st.integers(0, 4),
)
def test_figures_are_sound_for_any_counts(
    counts: tuple[int, int, int, int], missing: set[int], extra: int
) -> None:
    verdicts, human = study(*counts, only_judge=extra, judge_passes=extra // 2)
    for i, key in enumerate(sorted(verdicts)):
        if i in missing:
            verdicts[key] = None
    found: JudgeQuality = judge_quality(verdicts, human)
    assert sum(map(sum, found.confusion)) == sum(counts)
    assert found.judged + found.unparseable == found.replies == len(verdicts)
    json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert (found.pass_rate_corrected is None) == (found.missing is not None)
    if found.pass_rate_corrected_interval is not None:
        lower, upper = found.pass_rate_corrected_interval
        assert 0 <= lower <= (found.pass_rate_corrected or 0.0) <= upper <= 1
    assert found.sentence


@given(verdicts=st.lists(st.sampled_from([True, False, None])), limit=st.floats(0, 1))
def test_shares_of_missing_verdicts(verdicts: list[bool | None], limit: float) -> None:
    found = judge_errors(verdicts, limit)
    assert found.judged + found.errors == found.total == len(verdicts)
    if not verdicts:
        assert found.share is found.lower is found.upper is found.message is None
        return
    assert found.lower is not None
    assert found.upper is not None
    assert 0 <= found.lower <= found.upper <= 1
    assert (found.message is None) == (verdicts.count(None) / len(verdicts) <= limit)
