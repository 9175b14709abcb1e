"""Grading: deterministic checks that turn a reply into a grade."""

from evalkit.grading.checks import Boolean, Check, CheckKind, Choice, Contains, Exact
from evalkit.grading.final_answer import THINK_TAGS, final_text
from evalkit.grading.grade import Grade, GradeStatus
from evalkit.grading.json_contract import FieldType, JsonObject
from evalkit.grading.numbers import Number, read_number
from evalkit.grading.registry import Label, grade_reply, parse_check, reference_faults
from evalkit.grading.reply_status import ReplyStatus, reply_status

__all__ = [
    "THINK_TAGS",
    "Boolean",
    "Check",
    "CheckKind",
    "Choice",
    "Contains",
    "Exact",
    "FieldType",
    "Grade",
    "GradeStatus",
    "JsonObject",
    "Label",
    "Number",
    "ReplyStatus",
    "final_text",
    "grade_reply",
    "parse_check",
    "read_number",
    "reference_faults",
    "reply_status",
]
