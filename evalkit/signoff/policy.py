"""`read_policy`: a gate policy (gates.yaml), checked whole; every fault names file, line, field and fix."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import date
from pathlib import Path
from typing import Literal, cast

from evalkit.errors import InputError
from evalkit.study import nodes
from evalkit.study.fields import Report, Section, clean_name, shown
from evalkit.study.files import read_text
from evalkit.study.nodes import Node, Scalar, join_path
from evalkit.study.secrets import hide_secrets
from evalkit.study.strict_yaml import load_yaml

__all__ = ["Baseline", "ClassRule", "Policy", "PolicyLimits", "Signer", "read_policy"]

GateOn = Literal["bound", "estimate"]


@dataclass(frozen=True, slots=True)
class ClassRule:
    """Limits of one risk class: the largest share of its needs that may be under-routed (routing), of its tasks
    that may fail (reasoning). None: the policy is silent."""

    max_under_route: float | None = None
    max_failure: float | None = None
    gate_on: GateOn = "bound"


@dataclass(frozen=True, slots=True)
class Baseline:
    """What is in production: `arms` (`always:<tier>` of a routing run, or arms of a ladder), or `today`, the
    folder of a run of today's policy. The pass rate may fall by at most `margin` (a share) against it."""

    arms: tuple[str, ...] = ()
    today: Path | None = None
    today_written: str | None = None
    margin: float = 0.0


@dataclass(frozen=True, slots=True)
class PolicyLimits:
    """Limits on the whole of a run: shares, USD, seconds. None: the policy is silent."""

    min_pass_rate: float | None = None
    max_cost_per_request: float | None = None
    p95_task_seconds: float | None = None
    max_escalation: float | None = None
    min_answered_share: float | None = None


@dataclass(frozen=True, slots=True)
class Signer:
    """Who has to sign; `name` is None where anybody of the role may."""

    role: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """A gate policy. `sha256` is of the file's bytes: one changed comment is another policy.

    release: rollout (lines), watch, rollback_when, rollback_how, owner, expires (YYYY-MM-DD), as far as given.
    """

    name: str
    path: Path
    sha256: str
    content: bytes = field(repr=False)
    risk: Mapping[str, ClassRule] = field(default_factory=dict)
    limits: PolicyLimits = field(default_factory=PolicyLimits)
    baseline: Baseline | None = None
    judge_min_agreement: float | None = None
    judge_max_unparseable: float | None = None
    labels_min_alpha: float | None = None
    labels_max_age_days: int | None = None
    labels_max_missed: float | None = None
    prices_max_age_days: int | None = None
    attempts_max: int | None = None
    release: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    signers: tuple[Signer, ...] = ()

    @property
    def file(self) -> str:
        """The name of the file, without its folder."""
        return self.path.name

    @property
    def gates_fingerprint(self) -> str:
        """SHA-256 in hex of what the policy asks for, without release and signers: asking for something else of
        the same labels is another look at them."""
        baseline = self.baseline
        asked = [
            [[name, r.max_under_route, r.max_failure, r.gate_on] for name, r in sorted(self.risk.items())],
            [getattr(self.limits, one.name) for one in fields(self.limits)],
            None if baseline is None else [list(baseline.arms), baseline.today_written, baseline.margin],
            [self.judge_min_agreement, self.judge_max_unparseable, self.labels_min_alpha],
            [self.labels_max_age_days, self.prices_max_age_days, self.attempts_max],
        ]
        if self.labels_max_missed is not None:  # what a policy asked before it could ask this hashes as it did
            asked.append([self.labels_max_missed])
        return hashlib.sha256(json.dumps(asked).encode()).hexdigest()


_TOP = ("policy", "risk", "baseline", "limits", "judge", "labels", "prices", "attempts", "release", "signers")
_CLASS = ("max_under_route", "max_failure", "gate_on")
_LIMITS = (
    "min_pass_rate",
    "max_cost_per_request",
    "p95_task_seconds",
    "max_escalation",
    "min_answered_share",
)
_RELEASE = ("rollout", "watch", "rollback_when", "rollback_how", "owner", "expires")
MOST_DAYS = 36_500


def read_policy(path: str | Path) -> Policy:
    """The gate policy in the YAML file `path`. Raises `InputError` with every fault of the file.

    A limit that nothing can break, a section without content and a literal secret are faults: a policy says less
    than it seems to otherwise.
    """
    read_text(path)  # says what is wrong with the file itself
    content = Path(path).read_bytes()
    document, notices = hide_secrets(load_yaml(path))
    report = Report(document.file, document.faults, document.secrets)
    if notices:
        fix = "take it out: a policy is copied into every sign-off"
        report.add(1, None, "holds what looks like a key or password", fix)
    if document.root is None:
        raise InputError(report.in_order())
    if not isinstance(document.root, nodes.Mapping):
        report.add(document.root.line, None, "is no policy: it holds no keys", "write policy: and the limits")
        raise InputError(report.in_order())
    top = Section(report, document.root, "", _TOP)
    policy = _policy(top, Path(path), content)
    if report.faults or policy is None:
        raise InputError(report.in_order())
    return policy


def _policy(top: Section, path: Path, content: bytes) -> Policy | None:
    name = top.text("policy", missing="write policy: and a short name, such as support-release")
    if name is not None and (problem := clean_name(name)) is not None:
        top.fault("policy", problem, "give the policy a short plain name")
        name = None
    risk = _risk(top)
    limits = _limits(top)
    baseline = _baseline(top, path.parent)
    judge = _part(top, "judge", ("min_agreement", "max_unparseable"))
    labels = _part(top, "labels", ("min_alpha", "max_age_days", "max_missed_needs"))
    prices = _part(top, "prices", ("max_age_days",))
    attempts = _part(top, "attempts", ("max",))
    release = _release(top)
    signers = _signers(top)
    policy = Policy(
        name=name or "",
        path=path,
        sha256=hashlib.sha256(content).hexdigest(),
        content=content,
        risk=risk,
        limits=limits,
        baseline=baseline,
        judge_min_agreement=None if judge is None else _floor(judge, "min_agreement"),
        judge_max_unparseable=None if judge is None else _ceiling(judge, "max_unparseable"),
        labels_min_alpha=None if labels is None else _floor(labels, "min_alpha"),
        labels_max_age_days=None if labels is None else labels.integer("max_age_days", low=0, high=MOST_DAYS),
        labels_max_missed=None if labels is None else _ceiling(labels, "max_missed_needs"),
        prices_max_age_days=None if prices is None else prices.integer("max_age_days", low=0, high=MOST_DAYS),
        attempts_max=None if attempts is None else attempts.integer("max", low=1, high=50),
        release=release,
        signers=signers,
    )
    asks = (risk, limits != PolicyLimits(), baseline, judge, labels, prices, attempts)
    if not any(asks) and not top.report.faults:
        top.report.add(top.line(), None, "sets no limit at all", "write risk: or limits: with at least one limit")
    return policy if name is not None else None


def _part(top: Section, key: str, known: tuple[str, ...]) -> Section | None:
    """A section of limits, which must not be empty."""
    section = top.section(key, known, like=f"{{{known[0]}: ...}}")
    if section is not None and not any(section.has(name) for name in known):
        section.report.add(section.line(), key, "holds no limit", f"write {' or '.join(known)}, or delete {key}")
    return section


def _floor(section: Section, key: str) -> float | None:
    value = section.number(key, high=1)
    if value == 0:
        section.fault(key, "is 0, which nothing can break", "write a share above 0, or leave it out")
    return value


def _ceiling(section: Section, key: str) -> float | None:
    value = section.number(key, high=1)
    if value == 1:
        section.fault(key, "is 1, which nothing can break", "write a share below 1, or leave it out")
    return value


def _risk(top: Section) -> dict[str, ClassRule]:
    like = "{max_under_route: 0.02} or {max_failure: 0.05}"
    node = top.get("risk")
    if node is None:
        return {}
    if not isinstance(node, nodes.Mapping) or not node.entries:
        top.fault(
            "risk", f"is {shown(node)} without classes", f"write a line for each class, such as high: {like}"
        )
        return {}
    found: dict[str, ClassRule] = {}
    for name, entry in node.entries.items():
        path = join_path("risk", name)
        if (problem := clean_name(name)) is not None:
            top.report.add(entry.line, path, problem, "write the name of a risk class of the study")
            continue
        if not isinstance(entry.node, nodes.Mapping):
            top.report.add(entry.line, path, f"is {shown(entry.node)}, not a mapping", f"write {like}")
            continue
        section = Section(top.report, entry.node, path, _CLASS)
        under, failure = _ceiling(section, "max_under_route"), _ceiling(section, "max_failure")
        gate_on = section.choice("gate_on", ("bound", "estimate"))
        if not section.has("max_under_route") and not section.has("max_failure"):
            section.report.add(entry.line, path, "holds no limit", f"write {like}, or delete the class")
        plain = unicodedata.normalize("NFC", name)
        found[plain] = ClassRule(under, failure, cast(GateOn, gate_on or "bound"))
    return found


def _limits(top: Section) -> PolicyLimits:
    section = _part(top, "limits", _LIMITS)
    if section is None:
        return PolicyLimits()
    return PolicyLimits(
        min_pass_rate=_floor(section, "min_pass_rate"),
        max_cost_per_request=section.number("max_cost_per_request"),
        p95_task_seconds=section.number("p95_task_seconds"),
        max_escalation=_ceiling(section, "max_escalation"),
        min_answered_share=_floor(section, "min_answered_share"),
    )


def _baseline(top: Section, base: Path) -> Baseline | None:
    section = top.section("baseline", ("arm", "today", "margin_points"), like='{arm: "always:frontier", ...}')
    if section is None:
        return None
    arms = _lines(section, "arm")
    today = section.text("today")
    if bool(arms) == (today is not None):
        what = "names both an arm and a run of today" if arms else "names neither an arm nor a run of today"
        fix = 'write arm: "always:<tier>" (or an arm of the ladder), or today: and the folder of a run'
        section.report.add(section.line(), "baseline", what, fix)
    margin = section.number(
        "margin_points", high=100, missing="write by how many points the pass rate may fall, such as 1.0"
    )
    if margin is not None and margin >= 100:
        section.fault("margin_points", "is 100, which nothing can break", "write fewer points")
    folder = None if today is None else base / today
    return Baseline(arms, folder, today, 0.0 if margin is None else margin / 100)


def _release(top: Section) -> dict[str, str | tuple[str, ...]]:
    section = top.section("release", _RELEASE, like="{owner: ..., rollback_when: ...}")
    if section is None:
        return {}
    found: dict[str, str | tuple[str, ...]] = {}
    for key in _RELEASE:
        lines = _lines(section, key)
        if not lines:
            continue
        if key in {"owner", "expires"} and len(lines) > 1:
            section.fault(key, "is a list", "write one line of text")
            continue
        found[key] = lines[0] if key in {"owner", "expires"} else lines
    if "expires" in found and not _is_date(cast(str, found["expires"])):
        section.fault(
            "expires", f'is "{found["expires"]}", which is no date', 'write it as "2027-03-01", in quotes'
        )
    return found


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _lines(section: Section, key: str) -> tuple[str, ...]:
    """One text, or a list of them."""
    node = section.get(key)
    if node is None:
        return ()
    if isinstance(node, Scalar):
        one = section.text(key)
        return () if one is None else (one,)
    if isinstance(node, nodes.Sequence) and node.items:
        found = [_text_of(section, item, f"{section.where(key)}[{at}]") for at, item in enumerate(node.items)]
        return tuple(one for one in found if one is not None)
    section.fault(key, f"is {shown(node)}, neither text nor a list of it", "write text")
    return ()


def _text_of(section: Section, node: Node, path: str) -> str | None:
    if isinstance(node, Scalar) and isinstance(node.value, str) and node.value.strip():
        return unicodedata.normalize("NFC", node.value)
    if not (isinstance(node, Scalar) and isinstance(node.value, nodes.Refused)):
        section.report.add(
            node.line, path, f"is {shown(node)}, not text", "write text, in quotes where it is a number"
        )
    return None


def _signers(top: Section) -> tuple[Signer, ...]:
    node = top.get("signers")
    if node is None:
        return ()
    if not isinstance(node, nodes.Sequence) or not node.items:
        top.fault("signers", f"is {shown(node)} without entries", "write - {role: approver, name: ...}")
        return ()
    found: list[Signer] = []
    for at, item in enumerate(node.items):
        path = join_path("signers", at)
        if not isinstance(item, nodes.Mapping):
            top.report.add(
                item.line, path, f"is {shown(item)}, not a mapping", "write {role: approver, name: ...}"
            )
            continue
        section = Section(top.report, item, path, ("role", "name"))
        role, name = section.text("role", missing="write role: and what they sign as"), section.text("name")
        for key, value in (("role", role), ("name", name)):
            if value is not None and (problem := clean_name(value)) is not None:
                section.fault(key, problem, "write plain text of at most 100 characters")
        if role is not None:
            if any(one.role == role and one.name == name for one in found):
                section.fault("role", "stands there twice with this name", "name everybody once")
            found.append(Signer(role, name))
    return tuple(found)
