"""Grading: from a reply to its grade, by a rubric. Grades that people gave are read by `evalkit.grading.human`."""

from evalkit.grading.cell import Graded, grade_cell, grade_with, judge_requests, requests_to_judge
from evalkit.grading.checks import Boolean, Check, CheckKind, Choice, Contains, Exact
from evalkit.grading.contract import Contract, JsonMode
from evalkit.grading.entry_point import PythonCheck
from evalkit.grading.final_answer import THINK_TAGS, final_text
from evalkit.grading.grade import Grade, GradeStatus
from evalkit.grading.items import Item, items_of
from evalkit.grading.json_contract import FieldType, JsonObject
from evalkit.grading.judge_prompt import JudgePrompt
from evalkit.grading.numbers import Number, read_number
from evalkit.grading.patterns import Pattern, Regex
from evalkit.grading.preflight import rubric_faults
from evalkit.grading.read_rubric import read_rubric
from evalkit.grading.registry import Label, grade_reply, parse_check, reference_faults
from evalkit.grading.reply_status import ReplyStatus, reply_status
from evalkit.grading.rubric import Decider, Human, Judge, Rubric
from evalkit.grading.verdict import Verdict, read_verdict

__all__ = [
    "THINK_TAGS",
    "Boolean",
    "Check",
    "CheckKind",
    "Choice",
    "Contains",
    "Contract",
    "Decider",
    "Exact",
    "FieldType",
    "Grade",
    "GradeStatus",
    "Graded",
    "Human",
    "Item",
    "JsonMode",
    "JsonObject",
    "Judge",
    "JudgePrompt",
    "Label",
    "Number",
    "Pattern",
    "PythonCheck",
    "Regex",
    "ReplyStatus",
    "Rubric",
    "Verdict",
    "final_text",
    "grade_cell",
    "grade_reply",
    "grade_with",
    "items_of",
    "judge_requests",
    "parse_check",
    "read_number",
    "read_rubric",
    "read_verdict",
    "reference_faults",
    "reply_status",
    "requests_to_judge",
    "rubric_faults",
]
