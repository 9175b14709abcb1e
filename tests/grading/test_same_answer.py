"""When two replies say the same."""

from __future__ import annotations

import doctest

import evalkit.grading.same_answer
from evalkit.grading.same_answer import answer_key


def test_case_blanks_and_composition_do_not_matter_and_all_else_does() -> None:
    assert answer_key(" The\tAnswer\n is  4 ") == answer_key("the answer is 4")
    assert answer_key("\u1100\u1161") == answer_key("\uac00")  # jamo and the syllable they make
    assert answer_key("STRASSE") == answer_key("straße")
    assert answer_key("4") != answer_key("4.") != answer_key("four")
    assert doctest.testmod(evalkit.grading.same_answer).failed == 0
