"""result.json is strict, whole and stable."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import report_examples as examples
from hypothesis import given
from hypothesis import strategies as st

from evalkit.reporting import dump_json


def strict(data: bytes) -> Any:
    """What a reader in another language accepts: no NaN, no Infinity, no duplicate key."""

    def refuse(name: str) -> None:
        raise AssertionError(name)

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len({key for key, _ in pairs}) == len(pairs)
        return dict(pairs)

    return json.loads(data.decode("utf-8"), parse_constant=refuse, object_pairs_hook=once)


@pytest.mark.parametrize("name", examples.ALL)
def test_it_reads_back_as_the_result(name: str) -> None:
    result = examples.ALL[name]()
    data = dump_json(result)
    assert strict(data) == result
    assert data == dump_json(examples.ALL[name]())
    assert data.endswith(b"}\n")


def test_order_that_means_nothing_is_sorted_and_order_that_means_something_is_kept() -> None:
    one, other = examples.insufficient(), examples.insufficient()
    for key in ("dependencies", "numbers"):
        other["provenance"][key] = dict(reversed(other["provenance"][key].items()))
    assert dump_json(one) == dump_json(other)
    assert list(strict(dump_json(one))["baselines"]) == list(one["baselines"])


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_no_number_is_a_programming_error_with_its_path(bad: float) -> None:
    result = examples.insufficient()
    result["candidate"]["by_risk"]["critical"]["under_route_rate"] = bad
    with pytest.raises(ValueError, match=r"result\.candidate\.by_risk\.critical\.under_route_rate"):
        dump_json(result)


def test_what_json_does_not_know_is_refused_with_its_path() -> None:
    result = examples.insufficient()
    result["worst_items"][0]["flags"] = {"under"}
    with pytest.raises(TypeError, match=r"result\.worst_items\.0\.flags is a set"):
        dump_json(result)
    result = examples.insufficient()
    result["counts"][3] = 1
    with pytest.raises(TypeError, match="the key 3 is not text"):
        dump_json(result)


def test_keys_never_leave_with_it() -> None:
    result = examples.insufficient()
    result["worst_items"][0]["reply"] = "use sk-FAKE-demo-0000-not-a-key please"
    assert b"sk-FAKE" not in dump_json(result)


SMALL = examples.nothing_measured()
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.just("<é 한\u2028>"),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from("abcde"), inner),
    max_leaves=30,
)


@given(JSON)
def test_any_value_survives(value: Any) -> None:
    result = SMALL | {"points": [], "baselines": {}, "extra": value}
    assert strict(dump_json(result))["extra"] == value
