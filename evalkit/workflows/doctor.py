"""`evalkit doctor`: what a run needs, looked at before one is started. It shows no secret and calls no model."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path

from evalkit.errors import InputError, redact, remember_secret, visible
from evalkit.workflows import doctor_checks as machine
from evalkit.workflows.doctor_checks import Check
from evalkit.workflows.run_files import refuse_to_overwrite, report_folder, write_files

__all__ = ["doctor", "table"]

_WIDTH = 80
_LINES = 10_000


def doctor(
    study: Path | None, *, out: Path | None = None, live: bool = False, json_file: Path | None = None
) -> int:
    """Print one table of checks; 0, or 2 where one of them is a problem."""
    from evalkit.providers.credentials import environment_secrets

    for secret in environment_secrets():
        remember_secret(secret)
    if json_file is not None:
        refuse_to_overwrite([study], [json_file])
    checks = _checks(study, out, live, datetime.now(UTC).date())
    if json_file is not None:
        write_files({json_file: _as_json(checks)})
    print("\n".join(table(checks)))
    return 2 if any(check.status == "problem" for check in checks) else 0


def _checks(path: Path | None, out: Path | None, live: bool, today: date) -> list[Check]:
    checks = [machine.python(), *machine.packages(), machine.sqlite()]
    if path is None:
        checks += [machine.extras(False), *machine.folder(out or Path("reports"))]
        checks.append(_base(today))
        checks.append(Check("study", "ok", "none was named: keys, endpoints and prices of models are not checked"))
        return checks
    from evalkit.workflows import doctor_study as models
    from evalkit.workflows.replay_setup import read_any_study

    try:
        study = read_any_study(path)
    except InputError as error:
        checks += [machine.extras(False), *machine.folder(out or Path("reports"))]
        return checks + [Check("study", "problem", str(fault)) for fault in error.faults]
    checks.append(Check("study", "ok", f"{visible(path, 200)}: {visible(study.name, 60)}"))
    checks += [Check("study", "warning", notice) for notice in study.notices]
    found, wrong = models.candidates(study)
    checks.append(machine.extras(any(one.is_local for one in found)))
    checks += wrong
    checks += models.keys(found)
    checks += models.endpoints(found, live=live)
    checks += models.prices(study, found, today)
    checks += machine.folder(out or report_folder(study.name))
    return checks


def _base(today: date) -> Check:
    from evalkit.workflows.doctor_study import base_prices

    return base_prices(today)


def table(checks: Sequence[Check]) -> list[str]:
    """The checks as lines of at most 80 columns, each safe to print, and the count of what is wrong."""
    name_width = min(22, max((len(_safe(check.name)) for check in checks), default=4))
    lines: list[str] = []
    for check in checks:
        head = f"{check.status:<8} {_safe(check.name)[:22]:<{name_width}}  "
        lines += _wrapped(head, _safe(check.what))
        if check.fix is not None and check.status != "ok":
            lines += _wrapped(" " * len(head), f"Fix: {_safe(check.fix).rstrip('.')}.")
    counts = Counter(check.status for check in checks)
    parts = [f"{counts[status]} {status}{'' if counts[status] == 1 else 's'}" for status in ("problem", "warning")]
    return [*lines, "", f"{len(checks)} checks, {', '.join(parts)}"]


def _safe(text: str) -> str:
    return visible(text, _LINES)


def _wrapped(head: str, text: str) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        drop_whitespace=True,
        break_long_words=True,
        break_on_hyphens=False,
    ) or [head.rstrip()]


def _as_json(checks: Sequence[Check]) -> bytes:
    counts = Counter(check.status for check in checks)
    content = {
        "schema": "evalkit.doctor/1",
        "problems": counts["problem"],
        "warnings": counts["warning"],
        "checks": [
            {
                "name": redact(check.name),
                "status": check.status,
                "what": redact(check.what),
                "fix": None if check.fix is None or check.status == "ok" else redact(check.fix),
            }
            for check in checks
        ],
    }
    return (json.dumps(content, ensure_ascii=True, allow_nan=False, indent=2) + "\n").encode("ascii")
