"""`read_rubric`: a rubric from its YAML file, checked whole; every fault names file, line, field and fix."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from decimal import Decimal
from enum import Enum
from pathlib import Path

from evalkit.errors import InputError
from evalkit.grading.contract import Contract, JsonMode, schema_problems, schema_text
from evalkit.grading.entry_point import PythonCheck
from evalkit.grading.final_answer import THINK_TAGS
from evalkit.grading.judge_section import read_judge
from evalkit.grading.patterns import Pattern
from evalkit.grading.rubric import Decider, FromItem, Grader, Human, Rubric, parse_grader
from evalkit.study import nodes
from evalkit.study.fields import Report, Section, shown
from evalkit.study.nodes import Node, Refused, Scalar, join_path
from evalkit.study.secrets import hide_secrets
from evalkit.study.sources import Folder, read_file
from evalkit.study.strict_json import load_json
from evalkit.study.strict_yaml import load_yaml

__all__ = ["read_rubric"]

_KEYS = (
    "rubric",
    "description",
    "check",
    "think_tags",
    "answer_pattern",
    "contract",
    "judge",
    "human",
    "pass_at",
)
_CHECK_LIKE = "write {kind: exact}, say, or {from: item}, or {by_category: {...}}"


def read_rubric(path: str | Path) -> Rubric:
    """The rubric in the YAML file `path`; files it names are looked for beside it and read.

    Literal secrets are dropped and named in `notices`. A Python check is imported. Raises `InputError` with every
    fault of the file.
    """
    document, notices = hide_secrets(load_yaml(path))
    report = Report(document.file, document.faults, document.secrets)
    if document.root is None:
        raise InputError(report.in_order())
    if not isinstance(document.root, nodes.Mapping):
        report.add(
            document.root.line, None, "is not a rubric: it holds no keys", "write rubric: and the other keys"
        )
        raise InputError(report.in_order())
    top = Section(report, document.root, "", _KEYS)
    found = _rubric(top, Path(path))
    if report.faults or found is None:
        raise InputError(report.in_order())
    return replace(found, fingerprint=_fingerprint(found), notices=notices)


def _rubric(top: Section, path: Path) -> Rubric | None:
    name = top.text("rubric", missing="write rubric: and a name")
    description = top.text("description") or ""
    tags = _tags(top, "think_tags")
    contract = _contract(top, path.parent)
    judge = read_judge(top, path.parent, tags)
    human = _human(top, path.parent)
    default, by_category = _checks(top, path.parent)
    pass_at = top.number("pass_at", high=1)
    if pass_at == 0:
        top.fault("pass_at", "is 0, at which every answer passes", "write a score above 0, at most 1")
    if not top.has("check"):
        default = Decider.JUDGE if judge else Decider.HUMAN if human else Decider.CONTRACT if contract else None
        if not any(top.has(key) for key in ("judge", "human", "contract")):
            top.fault("check", "is missing, and there is no contract, judge or human either", _CHECK_LIKE)
    _needed(top, default, by_category)
    scores = set(judge.words.values()) if judge is not None else set()
    if scores and not min(scores) < (1.0 if pass_at is None else pass_at) <= max(scores):
        what = "give every answer the same grade at pass_at"
        top.report.add(
            top.line("judge"), "judge.words", what, "let some words pass and some fail, or change pass_at"
        )
    if name is None:
        return None
    return Rubric(
        name=name,
        path=path,
        default=default,
        by_category=by_category,
        description=description,
        think_tags=tags,
        answer_pattern=_answer_pattern(top),
        contract=contract,
        judge=judge,
        human=human,
        pass_at=1.0 if pass_at is None else pass_at,
    )


def _needed(top: Section, default: object, by_category: Mapping[str, object]) -> None:
    graders = [default, *by_category.values()]
    for who in Decider:
        if any(grader is who for grader in graders) and not top.has(who.value):
            top.fault("check", f"leaves the grade to the {who.value}, and there is none", f"write {who.value}:")


def _tags(section: Section, key: str) -> tuple[tuple[str, str], ...]:
    """Pairs of opening and closing tags around reasoning."""
    node = section.get(key)
    if node is None:
        return THINK_TAGS
    like = 'write - ["<think>", "</think>"], a line for each pair'
    if not isinstance(node, nodes.Sequence):
        section.fault(key, f"is {shown(node)}, not a list", like)
        return THINK_TAGS
    found = []
    for index, item in enumerate(node.items):
        pair = (
            [one.value for one in item.items if isinstance(one, Scalar)]
            if isinstance(item, nodes.Sequence)
            else []
        )
        words = [word for word in pair if isinstance(word, str) and word.strip()]
        if len(words) != 2 or len(pair) != 2 or words[0] == words[1]:
            section.report.add(item.line, join_path(section.where(key), index), "is not a pair of two tags", like)
        else:
            found.append((words[0], words[1]))
    return tuple(found)


def _answer_pattern(top: Section) -> Pattern | None:
    source = top.text("answer_pattern")
    if source is None:
        return None
    pattern = Pattern(source)
    problem = pattern.group_problem()
    if problem is not None:
        top.fault("answer_pattern", *problem)
    return pattern


def _contract(top: Section, base: Path) -> Contract | None:
    section = top.section("contract", ("json", "schema"), like="{json: strict, schema: schema.json}")
    if section is None:
        return None
    mode = section.choice("json", tuple(JsonMode), missing="write json: strict, or json: fenced_ok")
    return Contract(JsonMode(mode or "strict"), _schema(section, base))


def _schema(section: Section, base: Path) -> str | None:
    node = section.get("schema")
    if node is None:
        return None
    report, inline = section.report, isinstance(node, nodes.Mapping)
    value: object
    if inline:
        value = nodes.plain(node)
        if _refused(node):
            return None
    else:
        path = read_file(section, "schema", Folder(base))
        if path is None:
            return None
        try:
            value = nodes.plain(load_json(path).require())
        except InputError as error:
            report.faults.extend(error.faults)
            return None
    problems = schema_problems(value)
    for what, fix in problems:
        section.fault("schema", what, fix)
    return schema_text(value) if isinstance(value, dict) and not problems else None


def _human(top: Section, base: Path) -> Human | None:
    section = top.section("human", ("path", "columns", "encoding"), like="{path: grades.csv}")
    if section is None:
        return None
    path = read_file(section, "path", Folder(base))
    if path is None and not section.has("path"):
        section.fault("path", "is required", "name the file of grades")
    node = section.get("columns")
    columns = {}
    if node is not None:
        given = nodes.plain(node)
        if isinstance(given, dict) and all(isinstance(v, str) for v in given.values()):
            columns = given
        elif not _refused(node):
            section.fault("columns", f"is {shown(node)}", "write {id: your_column, ...}")
    return None if path is None else Human(path, columns, section.text("encoding"))


def _checks(top: Section, base: Path) -> tuple[Grader | FromItem | None, dict[str, Grader | FromItem]]:
    node = top.get("check")
    if node is None:
        return None, {}
    if not isinstance(node, nodes.Mapping) or "by_category" not in node.entries:
        return _grader(top.report, node, "check", base), {}
    section = Section(top.report, node, "check", ("by_category",))
    inner = section.get("by_category")
    if not isinstance(inner, nodes.Mapping) or not inner.entries:
        if inner is not None:
            section.fault("by_category", "names no category", "write a check for each: arithmetic: {kind: number}")
        return None, {}
    found: dict[str, Grader | FromItem] = {}
    for name, entry in inner.entries.items():
        grader = _grader(top.report, entry.node, join_path("check.by_category", name), base)
        if grader is not None:
            found[name] = grader
    return found.pop("default", None), found


def _grader(report: Report, node: Node, path: str, base: Path) -> Grader | FromItem | None:
    if not isinstance(node, nodes.Mapping):
        if not (isinstance(node, Scalar) and isinstance(node.value, Refused)):
            report.add(node.line, path, f"is {shown(node)}, not a mapping", _CHECK_LIKE)
        return None
    if "from" in node.entries:
        section = Section(report, node, path, ("from",))
        return FromItem() if section.choice("from", ("item",)) else None
    kind = node.entries.get("kind")
    if kind is not None and isinstance(kind.node, Scalar) and kind.node.value == "python":
        return _python(Section(report, node, path, ("kind", "function")), base)
    if _refused(node):
        return None
    try:
        return parse_grader(nodes.plain(node))
    except InputError as error:
        for fault in error.faults:
            field = (fault.field or "check").removeprefix("check")
            report.add(_line(node, field), path + field, fault.what, _with_python(field, fault.fix))
        return None


def _with_python(field: str, fix: str) -> str:
    return f"{fix}, {', '.join(Decider)}, python" if field == ".kind" else fix


def _python(section: Section, base: Path) -> PythonCheck | None:
    function = section.text("function", missing="write function: module:name")
    if function is None:
        return None
    check = PythonCheck(function, base)
    problem = check.problem()
    if problem is not None:
        section.fault("function", *problem)
        return None
    return check


def _line(node: nodes.Mapping, field: str) -> int:
    entry = node.entries.get(field.lstrip("."))
    return node.line if entry is None else entry.line


def _refused(node: Node) -> bool:
    return any(isinstance(scalar.value, Refused) for _, _, scalar in nodes.walk(node))


def _fingerprint(rubric: Rubric) -> str:
    """sha256 as 64 hex digits of what the rubric says; comments, folders and the order of keys do not count."""
    left_out = {"path", "folder", "secrets", "fingerprint", "notices", "description"}

    def canonical(value: object) -> object:
        if isinstance(value, PythonCheck):
            return ["python", value.function, value.source_sha256()]
        if is_dataclass(value) and not isinstance(value, type):
            content = {f.name: canonical(getattr(value, f.name)) for f in fields(value) if f.name not in left_out}
            return [type(value).__name__, content]
        if isinstance(value, Mapping):
            return {str(key): canonical(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [canonical(item) for item in value]
        if isinstance(value, Decimal):
            return format(value.normalize(), "f")
        return value.value if isinstance(value, Enum) else value

    text = json.dumps(["evalkit.rubric/1", canonical(rubric)], sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
