"""What a class needs: printed values, and enumeration for the rest."""

from __future__ import annotations

import pytest
from scipy import stats

from evalkit.labels.audit import ClassCounts, audit_class, draw_ids
from evalkit.labels.next_labels import ClassBound, quotas
from evalkit.labels.plan import ClassState, plan_class, plan_lines


def state(limit: float | None = 0.02, **changes: object) -> ClassState:
    values = {"name": "critical", "limit": limit, "on_estimate": False, "have": 0.0, "needs_share": 0.3,
              "class_share": 0.1}  # fmt: skip
    return ClassState(**{**values, **changes})  # type: ignore[arg-type]


class TestPlan:
    @pytest.mark.parametrize(
        ("limit", "needs"),
        [(0.01, [299, 473, 628]), (0.02, [149, 236, 313]), (0.05, [59, 93, 124]), (0.10, [29, 46, 61])],
    )
    def test_printed_needs(self, limit: float, needs: list[int]) -> None:
        assert [row.needs for row in plan_class(state(limit), 0.05).rows[:3]] == needs

    def test_draws_and_chance(self) -> None:
        row = plan_class(state(have=49.0), 0.05).rows[0]
        assert row.missing == 100
        assert row.draw_of_class is not None
        assert row.draw_of_all is not None
        assert stats.binom.sf(99, row.draw_of_class, 0.3) >= 0.9 > stats.binom.sf(99, row.draw_of_class - 1, 0.3)
        assert stats.binom.sf(99, row.draw_of_all, 0.03) >= 0.9
        assert row.chance == pytest.approx(0.99**149)  # no error in 149 at half of 2 %

    def test_likely_row_is_likely(self) -> None:
        row = plan_class(state(), 0.05).rows[-1]
        assert row.chance is not None
        assert row.chance == pytest.approx(stats.binom.cdf(row.errors, row.needs, 0.01))
        assert row.chance >= 0.8

    def test_forty_of_a_hundred_find_the_direction(self) -> None:
        whole, part = plan_class(state(), 0.05).rows[0], plan_class(state(certifying=0.6), 0.05).rows[0]
        assert part.draw_of_class is not None
        assert whole.draw_of_class is not None
        assert part.draw_of_class > 1.6 * whole.draw_of_class

    def test_limits_that_nothing_certifies(self) -> None:
        zero = plan_class(state(0.0), 0.05)
        assert all(row.needs is None for row in zero.rows)
        assert plan_class(state(None), 0.05).rows == ()
        estimate = plan_class(state(0.1, on_estimate=True), 0.05)
        assert [row.needs for row in estimate.rows] == [10]
        assert estimate.rows[0].chance is None
        unknown = plan_class(state(needs_share=None), 0.05).rows[0]
        assert (unknown.missing, unknown.draw_of_class, unknown.draw_of_all) == (149, None, None)

    def test_table_fits_eighty_columns(self) -> None:
        wide = state(0.001, name="a class of a very long name \x1b[2J", have=123456.789, class_share=1e-6)
        lines = plan_lines(
            [plan_class(s, 0.05) for s in (wide, state(), state(None), state(0.1, on_estimate=True))]
        )
        assert max(map(len, lines)) <= 80
        assert "\x1b" not in "".join(lines)


class TestAudit:
    def test_printed_example(self) -> None:
        """160 needs, none under-routed, 140 labels that say cheap, 100 looked at, none missed."""
        got = audit_class(ClassCounts("critical", 0.02, 0, 160, 140), 100, 0, 0.05)
        assert got.missed_rate_upper == pytest.approx(1 - 0.025 ** (1 / 100))
        eta = 140 * got.missed_rate_upper / (140 * got.missed_rate_upper + 160)
        rate = 1 - 0.025 ** (1 / 160)
        assert got.upper == pytest.approx(eta + (1 - eta) * rate)
        assert got.upper_unaudited == pytest.approx(0.018549134, abs=6e-10)
        assert got.within_limit is False

    def test_conversations_and_weights_cost(self) -> None:
        plain = audit_class(ClassCounts("c", 0.1, 1, 100, 200), 80, 1, 0.05)
        heavy = audit_class(ClassCounts("c", 0.1, 1, 100, 200, scale=3.0), 80, 1, 0.05)
        group = audit_class(ClassCounts("c", 0.1, 1, 100, 200, grouped=True), 80, 1, 0.05)
        assert plain.upper is not None
        assert heavy.upper is not None
        assert group.upper is not None
        assert plain.upper < heavy.upper
        assert plain.upper < group.upper

    def test_nothing_to_miss(self) -> None:
        got = audit_class(ClassCounts("c", 0.02, 0, 149, 0), 0, 0, 0.05)
        assert got.upper_unaudited == pytest.approx(0.019904816, abs=6e-10)
        assert got.upper == pytest.approx(1 - 0.025 ** (1 / 149))  # half of delta is the audit's in any case
        assert audit_class(ClassCounts("c", 0.02, 0, 0, 10), 10, 0, 0.05).upper is None

    def test_draw_grows_and_knows_no_order(self) -> None:
        ids = [f"i{k}" for k in range(100)]
        assert draw_ids(ids, 20, 7, "low") == draw_ids(ids[::-1], 40, 7, "low")[:20]
        assert draw_ids(ids, 20, 7, "low") != draw_ids(ids, 20, 8, "low")
        hits = sum("i3" in draw_ids(ids, 20, seed, "low") for seed in range(1000))
        assert 150 <= hits <= 250


class TestNext:
    def test_the_class_that_decides_goes_first(self) -> None:
        sure = ClassBound("low", 0.10, 200, 2, 500, 0.5)
        tight = ClassBound("critical", 0.02, 50, 0, 500, 0.5)
        got = {q.bound.name: q for q in quotas([sure, tight], 100, 0.05)}
        assert (got["low"].label, got["critical"].label) == (0, 100)
        assert got["critical"].upper_now == pytest.approx(1 - 0.05 ** (1 / 50))
        assert got["critical"].upper_then == pytest.approx(1 - 0.05 ** (1 / 100))

    def test_pools_end_and_the_rest_goes_on(self) -> None:
        got = quotas([ClassBound("a", 0.02, 10, 0, 7, 0.5), ClassBound("b", 0.5, 100, 0, 1000, 0.5)], 50, 0.05)
        assert [q.label for q in got] == [7, 43]
        assert sum(q.label for q in quotas([ClassBound("a", 0.02, 0, 0, 3, None)], 50, 0.05)) == 3

    def test_alike_classes_share_alike(self) -> None:
        got = quotas([ClassBound(n, 0.05, 30, 0, 900, 0.3) for n in "abc"], 90, 0.05)
        assert [q.label for q in got] == [30, 30, 30]
