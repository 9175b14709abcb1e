"""Corrections for fallible judges and labels, against printed values and enumeration."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evalkit.statistics import judge, labels_audit
from evalkit.statistics.judge import prediction_powered_mean, rogan_gladen
from evalkit.statistics.labels_audit import audited_rate, true_rate_bound


@pytest.fixture(scope="module")
def golden(shared: Path) -> dict[str, Any]:
    return json.loads((shared / "golden" / "statistics.json").read_text(encoding="utf-8"))["8_labels"]


class TestRoganGladen:
    def test_printed_values(self) -> None:
        got = rogan_gladen(60, 1000, 90, 100, 194, 200)
        assert got.value == pytest.approx(0.034482759, abs=6e-10)
        assert (got.lower, got.upper) == pytest.approx((0, 0.06394887), abs=1e-8)
        assert got.naive == pytest.approx(0.06)

    def test_golden_values(self, golden: dict[str, Any]) -> None:
        for k, name in (
            (60, "rogan_gladen_k60_n1000_se90/100_sp194/200"),
            (20, "rogan_gladen_k20_n1000_negative_est"),
        ):
            got, expected = rogan_gladen(k, 1000, 90, 100, 194, 200), golden[name]
            assert [got.value, got.lower, got.upper] == pytest.approx(
                [expected["est"], *expected["LR_ci"]], rel=1e-10
            )
            assert got.naive == pytest.approx(expected["naive"])

    def test_covers(self) -> None:
        rng = np.random.default_rng(1)
        hits, true, se, sp = 0, 0.05, 0.9, 0.95
        flagged = rng.binomial(400, true * se + (1 - true) * (1 - sp), size=2000)
        for k, a, b in zip(flagged, rng.binomial(80, se, 2000), rng.binomial(150, sp, 2000), strict=True):
            got = rogan_gladen(int(k), 400, int(a), 80, int(b), 150)
            hits += got.lower <= true <= got.upper
        assert hits / 2000 >= 0.94

    @given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 30), st.integers(0, 30), st.integers(0, 40),
           st.integers(0, 40))  # fmt: skip
    def test_stays_between_zero_and_one(self, k: int, not_k: int, a: int, not_a: int, b: int, not_b: int) -> None:
        got = rogan_gladen(k, k + not_k, a, a + not_a, b, b + not_b)
        n, positives, negatives = k + not_k, a + not_a, b + not_b
        if got is None:
            assert not (n and positives and negatives) or a * negatives + b * positives <= positives * negatives
        else:
            assert 0 <= got.lower <= got.value <= got.upper <= 1

    def test_too_few_grades_to_tell_the_judge_from_chance(self) -> None:
        got = rogan_gladen(1, 4, 1, 1, 1, 4)  # Se 1, Sp 1/4; with the pseudo-observations 2/3 and 1/3
        assert (got.lower, got.upper) == (0, 1)

    def test_perfect_judge_changes_nothing(self) -> None:
        got = rogan_gladen(60, 1000, 500, 500, 500, 500)
        assert got.value == pytest.approx(0.06)
        assert got.lower < 0.06 < got.upper

    def test_judge_no_better_than_chance_says_nothing(self) -> None:
        assert rogan_gladen(60, 1000, 50, 100, 100, 200) is None
        assert rogan_gladen(0, 0, 90, 100, 194, 200) is None
        assert rogan_gladen(60, 1000, 0, 0, 194, 200) is None
        with pytest.raises(
            ValueError, match="The `found` parameter of `rogan_gladen` must be between 0 and `positives`"
        ):
            rogan_gladen(60, 1000, 101, 100, 194, 200)


class TestPredictionPowered:
    # 200 graded: 16 fail, the judge flags 22 of which 13 fail; it flags 600 of 5,000 others.
    graded = np.repeat([1.0, 1.0, 0.0, 0.0], [13, 3, 9, 175])
    judged = np.repeat([1.0, 0.0, 1.0, 0.0], [13, 3, 9, 175])
    others = np.repeat([1.0, 0.0], [600, 4400])

    def test_golden_values(self, golden: dict[str, Any]) -> None:
        expected = golden["ppi"]
        got = prediction_powered_mean(self.graded, self.judged, self.others, power=1.0)
        assert got.value == pytest.approx(expected["lam1"]["est"])
        assert [got.lower, got.upper] == pytest.approx(expected["lam1"]["ci"])
        assert got.naive == pytest.approx(expected["judge_only"])
        got = prediction_powered_mean(self.graded, self.judged, self.others)
        assert got.value == pytest.approx(expected["ppi_pp"]["est"])
        assert [got.lower, got.upper] == pytest.approx(expected["ppi_pp"]["ci"])
        got = prediction_powered_mean(self.graded, self.judged, self.others, power=0.0)
        assert got.value == pytest.approx(expected["classical"]["est"])
        assert (got.upper - got.value) / stats.norm.ppf(0.975) == pytest.approx(expected["classical"]["se"])

    def test_values_without_the_folder(self) -> None:
        got = prediction_powered_mean(self.graded, self.judged, self.others)
        assert (got.value, got.lower, got.upper) == pytest.approx(
            (0.0851314900, 0.0564551547, 0.1138078254), abs=1e-9
        )

    @given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30),
           st.lists(st.booleans(), min_size=1, max_size=60))  # fmt: skip
    def test_never_wider_than_without_the_judge(self, pairs: list[tuple[bool, bool]], others: list[bool]) -> None:
        graded, judged = zip(*pairs, strict=True)
        tuned = prediction_powered_mean(graded, judged, others)
        alone = prediction_powered_mean(graded, judged, others, power=0.0)
        # The power is chosen with the pooled variance: on few items it may cost a little.
        assert tuned.upper - tuned.lower <= (alone.upper - alone.lower) * 1.5 + 1e-9
        assert alone.value == pytest.approx(np.mean(graded))

    def test_nothing_to_say(self) -> None:
        assert prediction_powered_mean([], [], [1.0]) is None
        assert prediction_powered_mean([1.0], [1.0], []) is None
        with pytest.raises(ValueError, match="The `judged` parameter of `prediction_powered_mean`"):
            prediction_powered_mean([1.0], [1.0, 0.0], [1.0])


class TestMissedNeeds:
    @pytest.mark.parametrize(
        ("rate", "missed", "expected"),
        [
            (0.01, 0.0, 0.01),
            (0.01, 0.005, 0.01495),
            (0.01, 0.01, 0.0199),
            (0.01, 0.02, 0.0298),
            (0.02, 0.02, 0.0396),
        ],
    )
    def test_written_values(self, rate: float, missed: float, expected: float) -> None:
        assert true_rate_bound(rate, missed) == pytest.approx(expected)

    def test_golden_values(self, golden: dict[str, Any]) -> None:
        for name, expected in golden["hidden_bound"].items():
            rate, missed = (float(part.split("=")[1]) for part in name.split(","))
            assert true_rate_bound(rate, missed) == pytest.approx(expected)

    def test_wrong_need_labels(self) -> None:
        assert true_rate_bound(0.01, 0.0, precision=0.5) == pytest.approx(0.02)
        assert true_rate_bound(0.6, 0.1, precision=0.5) == 1.0
        assert true_rate_bound(0.0, 0.0, precision=0.0) == 1.0

    @given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
    def test_holds_whatever_is_under_routed(
        self, right: int, right_under: int, wrong: int, wrong_under: int, missed: int
    ) -> None:
        # True needs: `right` labelled as needs, `missed` labelled cheap, all of which go cheap. Labelled needs
        # also hold `wrong` items. Population figures: the inequality is exact.
        right_under, wrong_under = min(right, right_under), min(wrong, wrong_under)
        if right + missed == 0 or right + wrong == 0:
            return
        true = (right_under + missed) / (right + missed)
        label_rate = (right_under + wrong_under) / (right + wrong)
        bound = true_rate_bound(label_rate, missed / (right + missed), right / (right + wrong))
        assert true <= bound + 1e-12

    def test_refused(self) -> None:
        with pytest.raises(ValueError, match="The `missed_share` parameter of `true_rate_bound`"):
            true_rate_bound(0.1, 1.1)


class TestAudit:
    def test_golden_values(self, golden: dict[str, Any]) -> None:
        # 160 needs without a failure; 100 of 140 cheap labels looked at again, none wrong.
        got, expected = audited_rate(0, 160, 140, 100, 0), golden["audit_example"]
        assert got.missed_rate == pytest.approx(expected["u_hidden"])
        assert got.missed_items == pytest.approx(expected["hidden_items_ub"])
        assert got.upper == pytest.approx(expected["R_ub_with_audit"])
        assert got.upper_unaudited == pytest.approx(expected["R_ub_without"])

    def test_values_without_the_folder(self) -> None:
        got = audited_rate(0, 160, 140, 100, 0)
        missed = 140 * (1 - 0.025 ** (1 / 100))
        share = missed / (missed + 160)
        assert got.upper == pytest.approx(share + (1 - share) * (1 - 0.025 ** (1 / 160)))
        assert got.upper_unaudited == pytest.approx(0.018549134, abs=6e-10)

    def test_covers(self) -> None:
        # 4 % of the true needs carry a cheap label and all go cheap; 2 % of the others are under-routed.
        rng = np.random.default_rng(1)
        hits = 0
        for _ in range(1000):
            hidden = rng.binomial(200, 0.04)
            needs, cheap = 200 - hidden, 300 + hidden
            looked = rng.hypergeometric(hidden, 300, 150)
            got = audited_rate(rng.binomial(needs, 0.02), needs, cheap, 150, int(looked))
            hits += got.upper >= 0.04 + 0.96 * 0.02
        assert hits / 1000 >= 0.95

    def test_nothing_to_say(self) -> None:
        assert audited_rate(0, 0, 10, 5, 0) is None
        assert audited_rate(0, 10, 10, 0, 0) is None
        assert audited_rate(0, 0, 0, 0, 0) is None
        with pytest.raises(ValueError, match="The `audited` parameter of `audited_rate`"):
            audited_rate(0, 10, 10, 11, 0)
        with pytest.raises(ValueError, match="The `missed` parameter of `audited_rate`"):
            audited_rate(0, 10, 10, 5, 6)


def test_documented_examples() -> None:
    import doctest

    assert doctest.testmod(judge).failed == 0
    assert doctest.testmod(labels_audit).failed == 0
    assert math.isfinite(true_rate_bound(0.0, 0.0))
