"""The `judge` section of a rubric."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evalkit.errors import InputError, visible
from evalkit.grading.checks import plain
from evalkit.grading.judge_prompt import JudgePrompt
from evalkit.grading.rubric import MAX_ERROR_SHARE, Judge
from evalkit.study import nodes
from evalkit.study.calls_section import read_secrets
from evalkit.study.fields import Section, shown
from evalkit.study.files import read_text
from evalkit.study.nodes import Scalar, join_path
from evalkit.study.sections import read_params
from evalkit.study.sources import Folder, read_file

__all__ = ["read_judge"]

_KEYS = (
    "model",
    "params",
    "prompt",
    "prompt_file",
    "system",
    "words",
    "json_field",
    "json",
    "scale",
    "pairwise",
    "on_disagreement",
    "max_error_share",
)
_VERDICTS = {"pass": 1.0, "fail": 0.0}
_SIDES = {"first": 1.0, "tie": 0.5, "second": 0.0}
_WORDS_LIKE = "write words: {CORRECT: pass, INCORRECT: fail}"


def read_judge(top: Section, base: Path, tags: tuple[tuple[str, str], ...]) -> Judge | None:
    """The judge of the rubric; None where there is none, or where a fault was noted."""
    section = top.section("judge", _KEYS, like="{model: ..., prompt: ..., words: {...}}")
    if section is None:
        return None
    before = len(section.report.faults)
    model = section.text("model", missing="name the model that judges")
    params = read_params(section)
    pairwise = section.flag("pairwise") is True
    prompt = _prompt(section, base, pairwise)
    words = _words(section, pairwise)
    whole = len(words) == len(_written(section))
    scale = _scale(section)
    json_field = section.text("json_field")
    mode = section.choice("json", ("strict", "fenced_ok"))
    disagreement = section.choice("on_disagreement", ("judge_error", "tie"))
    share = section.number("max_error_share", high=1)
    if mode is not None and json_field is None:
        section.fault(
            "json", "is about a verdict in JSON, and there is no json_field", "write json_field: verdict"
        )
    if disagreement is not None and not pairwise:
        section.fault("on_disagreement", "is about two orders, and the judge sees one", "write pairwise: true")
    if pairwise and scale is not None:
        section.fault("scale", "stands beside pairwise", "write words: {A: first, B: second, TIE: tie}")
    elif words and scale is not None:
        section.fault("scale", "stands beside words", "keep one of the two")
    elif whole and pairwise and not {0.0, 1.0} <= set(words.values()) and section.has("words"):
        section.fault("words", "lack a word for first or for second", "write {A: first, B: second, TIE: tie}")
    elif not words and scale is None and (json_field is None or pairwise) and not section.has("words"):
        section.fault("words", "are missing", _WORDS_LIKE)
    elif whole and words and not pairwise and len(set(words.values())) < 2:
        section.fault("words", "all give the same verdict", _WORDS_LIKE)
    if len(section.report.faults) > before or model is None or prompt is None:
        return None
    return Judge(
        model=model,
        prompt=prompt,
        params=params,
        secrets=read_secrets(section),
        system=section.text("system"),
        words=words,
        json_field=json_field,
        fenced_ok=mode == "fenced_ok",
        scale=scale,
        pairwise=pairwise,
        tie_on_disagreement=disagreement == "tie",
        think_tags=tags,
        max_error_share=MAX_ERROR_SHARE if share is None else share,
    )


def _prompt(section: Section, base: Path, pairwise: bool) -> JudgePrompt | None:
    key = "prompt_file" if section.has("prompt_file") else "prompt"
    if section.has("prompt_file") and section.has("prompt"):
        section.fault("prompt_file", "stands beside prompt", "keep one of the two")
        return None
    file, first = section.report.file, section.line(key)
    if key == "prompt":
        source = section.text("prompt", missing="write the prompt, or prompt_file: and the name of its file")
        node = section.mapping.entries["prompt"].node if section.has("prompt") else None
        # In a block the text begins on the line below the key.
        block = isinstance(node, Scalar) and source is not None and "\n" in source
        first += 1 if block else 0
    else:
        path = read_file(section, "prompt_file", Folder(base))
        try:
            source = None if path is None else read_text(path)
        except InputError as error:
            section.report.faults.extend(error.faults)
            return None
        file, first = str(path), 1
    if source is None:
        return None
    prompt = JudgePrompt(source, pairwise)
    for line, what, fix in prompt.problems():
        if key == "prompt":
            section.report.add(first + line - 1, section.where(key), what, fix)
        else:
            from evalkit.errors import Fault

            section.report.faults.append(Fault(what, fix, file=file, line=line))
    return prompt


def _written(section: Section) -> dict[str, nodes.Entry]:
    node = section.mapping.entries["words"].node if section.has("words") else None
    return node.entries if isinstance(node, nodes.Mapping) else {}


def _words(section: Section, pairwise: bool) -> dict[str, float]:
    node = section.get("words")
    if node is None:
        return {}
    meanings = _SIDES if pairwise else _VERDICTS
    allowed = ", ".join(meanings) + ("" if pairwise else ", or a score from 0 to 1")
    if not isinstance(node, nodes.Mapping) or not node.entries:
        section.fault("words", f"is {shown(node)}, not a mapping of words", _WORDS_LIKE)
        return {}
    found: dict[str, float] = {}
    folded: dict[str, str] = {}
    for word, entry in node.entries.items():
        path = join_path(section.where("words"), word)
        same = plain(word).removesuffix(".").strip().casefold()
        if same in folded or not same:
            what = f'"{visible(word, 60)}" cannot be told from "{visible(folded.get(same, ""), 60)}"'
            section.report.add(entry.line, path, what, "case, blanks and a final full stop do not count")
            continue
        folded[same] = word
        value: Any = entry.node.value if isinstance(entry.node, Scalar) else None
        if isinstance(value, str) and value in meanings:
            found[same] = meanings[value]
        elif (
            not pairwise
            and isinstance(entry.node, Scalar)
            and entry.node.text
            and not isinstance(value, str | bool)
        ):
            score = section.number_of(entry.node, entry.line, path, low=0, high=1)
            if score is not None:
                found[same] = float(score)
        else:
            section.report.add(entry.line, path, f"is {shown(entry.node)}", f"write one of: {allowed}")
    return found


def _scale(section: Section) -> tuple[int, int] | None:
    inner = section.section("scale", ("worst", "best"), like="{worst: 1, best: 5}")
    if inner is None:
        return None
    worst = inner.integer("worst", low=0, high=1000, missing="write the number of the worst answer")
    best = inner.integer("best", low=1, high=1000, missing="write the number of the best answer")
    if worst is None or best is None:
        return None
    if worst >= best:
        inner.fault("best", f"is {best}, not above worst ({worst})", "write the larger number as best")
        return None
    return worst, best
