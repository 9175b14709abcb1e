"""Personal data: what is removed, what stays, and that nothing of it is told."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.labels.personal_data import KINDS, cleaned, cleaned_json, personal_spans


def clean(text: str) -> str:
    return cleaned(text, Counter())


@pytest.fixture(scope="module")
def benchmark(repo: Path) -> ModuleType:
    path = repo / "benchmarks" / "personal_data_cases.py"
    spec = importlib.util.spec_from_file_location("personal_data_cases", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class TestPlantedCases:
    def test_two_hundred_of_each(self, benchmark: ModuleType) -> None:
        assert len(benchmark.PLANTED) == 200
        assert len(benchmark.HARMLESS) >= 200
        assert {kind for kind, _, _ in benchmark.PLANTED} == set(KINDS) - {"account", "name"}

    def test_recall_by_the_value_itself(self, benchmark: ModuleType) -> None:
        missed = [s for _, value, s in benchmark.PLANTED if value in clean(s)]
        assert len(missed) <= 4, missed  # .98 of 200

    def test_precision_on_look_alikes(self, benchmark: ModuleType) -> None:
        wrong = [s for s in benchmark.HARMLESS if clean(s) != s]
        assert len(wrong) <= 10, wrong  # 200 right and 10 wrong: .952


class TestChecks:
    """Numbers with check digits computed by hand in the comments."""

    @pytest.mark.parametrize(
        ("text", "kept"),
        [
            ("card 4000123456789017", False),
            ("card 4000123456789018", True),  # one off: Luhn fails
            ("card 7777777777777777", True),
            # 8*2+5*3+0*4+3*5+1*6+2*7+1*8+0*9+0*2+1*3+2*4+3*5 = 100; (11 - 100 % 11) % 10 = 0
            ("850312-1001230", False),
            ("850312-1001231", True),
            ("859912-1001230", True),  # no such month
            ("210305-4123456", False),  # born after October 2020: no check digit
            ("123456-7890123", True),
            ("536-90-4399", False),
            ("666-90-4399", True),  # never given out
        ],
    )
    def test_a_digit_decides(self, text: str, kept: bool) -> None:
        assert (clean(text) == text) is kept

    def test_business_number_is_no_person(self) -> None:
        assert clean("사업자등록번호 120-81-47521") == "사업자등록번호 120-81-47521"

    def test_a_telephone_behind_the_word_bank_is_one(self) -> None:
        assert (
            clean("은행에 보낼 글도 써 주세요. 제 번호는 010-2345-6710")
            == "은행에 보낼 글도 써 주세요. 제 번호는 [phone]"
        )
        assert clean("국민은행 110-234-567890 으로 보냈어요") == "국민은행 [account] 으로 보냈어요"

    def test_kind_is_told(self) -> None:
        text = "mail a.b@example.com, call 010-1234-5678, card 4000 1234 5678 9017, id 850312-1001230"
        assert clean(text) == "mail [email], call [phone], card [card], id [national id]"

    def test_full_width_and_unseen_characters_hide_nothing(self) -> None:
        assert clean("０１０-１２３４-５６７８") == "[phone]"
        assert clean("010\u200b-1234\u200b-5678 끝") == "[phone] 끝"
        assert clean("a\u200bb@example.com") == "[email]"

    def test_json_is_cleaned_throughout(self) -> None:
        found: Counter[str] = Counter()
        value = {"a@example.com": [{"text": "call 010-1234-5678"}, 3, None, True], "n": 4000123456789017}
        got = cleaned_json(value, found)
        assert got == {"[email]": [{"text": "call [phone]"}, 3, None, True], "n": "[card]"}
        assert found == {"email": 1, "phone": 1, "card": 1}


LONG = [
    "1 " * 5000,
    "a." * 5000 + "@",
    "0-" * 4000,
    "1 a " * 2000 + "St",
    "가동 1" * 2000,
    "x@y." * 3000,
    "eyJ" + "a" * 9000,
]


@pytest.mark.parametrize("text", LONG, ids=range(len(LONG)))
def test_hostile_text_ends(text: str) -> None:
    assert isinstance(clean(text), str)


@given(st.text(max_size=200))
def test_spans_are_in_order_and_inside(text: str) -> None:
    spans = personal_spans(text)
    ends = [0] + [end for _, end, _ in spans]
    assert all(a <= start < end <= len(text) for (start, end, _), a in zip(spans, ends, strict=False))


@given(
    st.sampled_from(["a@example.com", "010-1234-5678", "4000123456789017", "850312-1001230", "+82 10-3456-7890"]),
    st.text(st.characters(categories=["Lo", "Zs"], include_characters=".!?\n가나다"), max_size=20),
    st.text(st.characters(categories=["Lo", "Zs"], include_characters=".!?\n가나다"), max_size=20),
)
def test_found_whatever_stands_around(value: str, before: str, after: str) -> None:
    assert value not in clean(f"{before} {value} {after}")
