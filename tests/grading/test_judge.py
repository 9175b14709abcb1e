"""The judge: what it is asked, what its replies mean, and that nothing is guessed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.grading import (
    Grade,
    Item,
    Rubric,
    final_text,
    grade_cell,
    grade_with,
    judge_requests,
    read_verdict,
    requests_to_judge,
)
from evalkit.providers.call import Failure, FailureKind, Reply, Request

Make = Callable[..., Rubric]

WORDS = {"correct": 1.0, "incorrect": 0.0}
PLAIN = """
judge:
  model: demo/judge
  params: {max_tokens: 5, timeout: 3}
  system: Grade.
  prompt: "{{ reference }} | {{ answer }}"
  words: {CORRECT: pass, INCORRECT: fail}
"""
PAIRWISE = """
judge:
  model: demo/judge
  prompt: "1: {{ first }} 2: {{ second }}"
  words: {A: first, B: second, TIE: tie}
  pairwise: true
"""


@pytest.fixture(scope="module")
def plain(rubric_of: Make) -> Rubric:
    return rubric_of(PLAIN)


def said(text: str | None, finish: str | None = "stop", **more: str) -> Reply:
    return Reply(text, finish, **more)


class TestRequests:
    def test_what_goes_out(self, plain: Rubric) -> None:
        (request,) = judge_requests(plain, Item("a", reference="four"), "4", endpoint="http://judge:1")
        messages = ({"role": "system", "content": "Grade."}, {"role": "user", "content": "four | 4"})
        assert request == Request("demo/judge", messages, {"max_tokens": 5}, "http://judge:1")

    def test_none_where_no_judge_is_needed(self, plain: Rubric, rubric_of: Make) -> None:
        item = Item("a", reference="4")
        assert judge_requests(plain, item, "") == judge_requests(plain, item, " \n") == ()
        assert judge_requests(rubric_of("check: {kind: exact}\n"), item, "4") == ()
        with_contract = rubric_of("contract: {json: strict}\n" + PLAIN)
        assert judge_requests(with_contract, item, "no json") == ()
        assert len(judge_requests(with_contract, item, "4")) == 1
        assert judge_requests(plain, item, "x" * 400_000) == ()
        assert grade_with(plain, item, "x" * 400_000).reason == "judge_prompt_too_long"
        assert grade_with(plain, item, "x").reason == "judge_not_asked"

    def test_none_for_a_reply_that_is_no_answer(self, plain: Rubric) -> None:
        item = Item("a", reference="4")
        assert len(requests_to_judge(plain, item, said("4"))) == 1
        assert requests_to_judge(plain, item, said("4", "length")) == ()
        assert requests_to_judge(plain, item, said("<think>4")) == ()
        assert requests_to_judge(plain, item, said("4", "content_filter")) == ()
        assert requests_to_judge(plain, item, Failure(FailureKind.TIMEOUT, "late")) == ()
        assert requests_to_judge(plain, item, said("4"), served_as_requested=False) == ()

    def test_a_fence_that_the_contract_allows_is_not_shown(self, rubric_of: Make) -> None:
        rubric = rubric_of("contract: {json: fenced_ok}\n" + PLAIN)
        (request,) = judge_requests(rubric, Item("a", reference="4"), "```json\n4\n```")
        assert request.messages[-1]["content"] == "4 | 4\n"

    @given(thought=st.text(min_size=1), answer=st.text(min_size=1))
    def test_reasoning_never_reaches_the_judge(self, plain: Rubric, thought: str, answer: str) -> None:
        secret = f"SECRET{thought}".replace("</think>", "")
        tidy = answer.replace("<think>", "").replace("</think>", "")
        item = Item("a", prompt="q", reference="r")
        reply = said(f"<think>{secret}</think>{tidy}", reasoning=secret)
        for request in requests_to_judge(plain, item, reply):
            assert "SECRET" not in repr(request).replace(tidy, "")
            assert request.messages[-1]["content"] == f"r | {final_text(reply.text or '')}"


class TestVerdicts:
    @pytest.mark.parametrize(
        ("text", "score"),
        [
            ("CORRECT", 1.0),
            ("  Correct.\n", 1.0),
            ("<think>INCORRECT, I think</think>CORRECT", 1.0),
            ("INCORRECT", 0.0),
            ("CORRECT..", None),
            ("not correct", None),
            ("CORRECT INCORRECT", None),
            ("CORRECT: the answer is right", None),
            ("**CORRECT**", None),
            ("<think>CORRECT", None),
            ("<think>CORRECT</think>", None),
            ("ＣＯＲＲＥＣＴ", None),
            ("", None),
            ("1", None),
            ("true", None),
            ('{"verdict": "CORRECT"}', None),
        ],
    )
    def test_words(self, text: str, score: float | None) -> None:
        assert read_verdict(text, words=WORDS).score == score

    @pytest.mark.parametrize(
        ("text", "score"),
        [
            ('{"v": true}', 1.0),
            ('{"v": false}', 0.0),
            ('{"v": "correct", "why": "CORRECT or INCORRECT"}', 1.0),
            ('{"v": "Incorrect."}', 0.0),
            ('{"v": "false"}', None),
            ('{"v": 1}', None),
            ('{"v": 1.0}', None),
            ('{"v": null}', None),
            ('{"v": ["correct"]}', None),
            ('[{"v": true}]', None),
            ('{"v": true}{"v": true}', None),
            ('{"v": true, "v": true}', None),
            ('Verdict: {"v": true}', None),
            ('```json\n{"v": true}\n```', None),
            ("true", None),
        ],
    )
    def test_json(self, text: str, score: float | None) -> None:
        assert read_verdict(text, words=WORDS, json_field="v").score == score

    def test_a_fence_where_it_is_allowed(self) -> None:
        fenced = '```json\n{"v": true}\n```'
        assert read_verdict(fenced, words={}, json_field="v", fenced_ok=True).score == 1.0
        assert read_verdict(f"So:\n{fenced}", words={}, json_field="v", fenced_ok=True).score is None

    @pytest.mark.parametrize(
        ("text", "score"),
        [("1", 0.0), ("3", 0.5), ("5.", 1.0), ("0", None), ("6", None), ("4.5", None), ("4/5", None), ("٣", None),
         ('{"v": 4}', 0.75), ('{"v": 4.0}', 0.75), ('{"v": 4.5}', None), ('{"v": "4"}', None),
         ('{"v": true}', None), ('{"v": 1e0}', 0.0), ('{"v": 1e999999999}', None), ("5" * 50, None)],
    )  # fmt: skip
    def test_a_scale(self, text: str, score: float | None) -> None:
        assert read_verdict(text, words={}, scale=(1, 5), json_field="v", booleans=False).score == score

    @pytest.mark.parametrize("finish", ["length", "content_filter", "MAX_TOKENS", "error"])
    def test_a_cut_reply_is_no_verdict(self, finish: str) -> None:
        assert read_verdict("CORRECT", words=WORDS, finish_reason=finish).score is None

    def test_reasoning_in_a_channel_of_its_own_is_no_verdict(self) -> None:
        assert read_verdict("", words=WORDS, reasoning="CORRECT").score is None
        assert read_verdict(None, words=WORDS, reasoning="CORRECT").score is None

    @given(text=st.text() | st.text(alphabet='{}[]":,.0123456789 eE-trufalsncoi\\`\n<>/hk'))
    def test_any_text_gives_a_verdict_or_none(self, text: str) -> None:
        verdict = read_verdict(text, words=WORDS, json_field="v", fenced_ok=True)
        assert verdict.score in {None, 0.0, 1.0}
        if verdict.score == 1.0:
            shown = text.casefold()
            assert "correct" in shown or '"v"' in shown
        assert verdict.score is not None or verdict.reason.startswith("judge_")

    @given(before=st.text(max_size=5), after=st.text(max_size=5))
    def test_a_word_among_others_is_no_verdict(self, before: str, after: str) -> None:
        text = f"{before}CORRECT{after}"
        alone = text.strip().removesuffix(".").strip().casefold() == "correct"
        assert (read_verdict(text, words=WORDS).score == 1.0) <= alone


class TestGrades:
    @pytest.mark.parametrize(
        ("reply", "reason"),
        [
            (None, "judge_not_asked"),
            (Failure(FailureKind.RATE_LIMIT, "slow down"), "judge_failed"),
            (said("maybe"), "judge_no_verdict"),
            (said("CORRECT", "length"), "judge_truncated"),
            (said(""), "judge_empty"),
            (said("<think>hm"), "judge_no_final_answer"),
        ],
    )
    def test_a_judge_that_fails_says_nothing_of_the_answer(
        self, plain: Rubric, reply: Reply | Failure | None, reason: str
    ) -> None:
        grade = grade_with(plain, Item("a", reference="4"), "4", (reply,))
        assert (grade.status.value, grade.score, grade.passed, grade.reason) == ("judge_error", None, None, reason)

    def test_another_model_than_the_judge(self, plain: Rubric) -> None:
        item = Item("a", reference="4")
        graded = grade_cell(plain, item, "c", said("4"), (said("CORRECT"),), judge_served_as_requested=False)
        assert (graded.status, graded.reason) == ("judge_error", "judge_served_by_other_model")

    @given(answer=st.text())
    def test_no_answer_talks_its_way_past_the_judge(self, plain: Rubric, answer: str) -> None:
        for verdict in ("INCORRECT", "no idea", ""):
            assert grade_with(plain, Item("a", reference="4"), answer, (said(verdict),)).passed is not True

    def test_a_score_in_between(self, rubric_of: Make) -> None:
        rubric = rubric_of(
            "pass_at: 0.7\njudge: {model: m, prompt: '{{ answer }}', words: {FULL: 1, HALF: 0.5, NONE: 0}}\n"
        )
        item = Item("a")
        assert grade_with(rubric, item, "x", (said("half"),)) == Grade.scored(0.5, 0.7, "judged")
        assert grade_with(rubric, item, "x", (said("half"),)).status.value == "wrong"
        assert grade_with(rubric, item, "x", (said("full"),)).status.value == "ok"


class TestPairwise:
    @pytest.mark.parametrize(
        ("first", "second", "score"),
        [("A", "B", 1.0), ("B", "A", 0.0), ("TIE", "tie", 0.5), ("A", "A", None), ("B", "B", None),
         ("A", "TIE", None), ("TIE", "A", None), ("A", "C", None), ("C", "B", None)],
    )  # fmt: skip
    @pytest.mark.parametrize("rule", ["judge_error", "tie"])
    def test_both_orders(self, rubric_of: Make, first: str, second: str, score: float | None, rule: str) -> None:
        rubric = rubric_of(f"{PAIRWISE}  on_disagreement: {rule}\n")
        item = Item("a", reference="ref")
        asked = judge_requests(rubric, item, "ans")
        assert [request.messages[-1]["content"] for request in asked] == ["1: ans 2: ref", "1: ref 2: ans"]
        grade = grade_with(rubric, item, "ans", (said(first), said(second)))
        readable = {first, second} <= {"A", "B", "TIE", "tie"}
        wanted = 0.5 if score is None and rule == "tie" and readable else score
        assert grade.score == wanted
        assert grade.passed == (None if wanted is None else wanted == 1.0)
        if wanted is None:
            assert grade.reason == ("orders_disagree" if readable else "judge_no_verdict")

    def test_one_order_alone_decides_nothing(self, rubric_of: Make) -> None:
        rubric, item = rubric_of(PAIRWISE), Item("a", reference="ref")
        assert grade_with(rubric, item, "ans", (said("A"), None)).reason == "judge_not_asked"
        with pytest.raises(ValueError, match="must hold 2"):
            grade_with(rubric, item, "ans", (said("A"),))

    def test_a_boolean_names_no_side(self, rubric_of: Make) -> None:
        rubric = rubric_of(f"{PAIRWISE}  json_field: better\n")
        item = Item("a", reference="ref")
        yes = said('{"better": true}')
        assert grade_with(rubric, item, "ans", (yes, yes)).passed is None
        one, two = said('{"better": "A"}'), said('{"better": "B"}')
        assert grade_with(rubric, item, "ans", (one, two)).passed is True
