"""The verify command: a sign-off or run folder in, every changed file and field out, 0 or 1."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from evalkit.errors import Fault, InputError, fitted, visible
from evalkit.signoff.digest import SIGNOFF
from evalkit.workflows.run_check import FILES, of_another_version
from evalkit.workflows.verify import Finding, verify_run, verify_signoff

__all__ = ["VerifyOptions", "run_verify"]


@dataclass(frozen=True)
class VerifyOptions:
    """What the command line gave; None means not given."""

    report: Path
    allowed_signers: Path | None = None
    signed: bool = False
    json_file: Path | None = None
    quiet: bool = False


def run_verify(options: VerifyOptions) -> int:
    """0 where all is as it should be, else 1. InputError where there is nothing to verify."""
    folder = options.report if options.report.is_dir() else options.report.parent
    if (folder / SIGNOFF).is_file():
        found = verify_signoff(folder)
        signed, wrong = _signatures(options, folder)
        what = "sign-off"
    elif (folder / FILES["result"]).is_file():
        if options.allowed_signers is not None or options.signed:
            fix = "verify the folder of a sign-off, or leave the option out"
            raise InputError(Fault("is a run, which nobody signs", fix, file=str(folder)))
        found, signed, wrong, what = verify_run(folder), [], False, "run"
    else:
        what = f"holds neither {SIGNOFF} nor {FILES['result']}"
        raise InputError(Fault(what, "name the folder of a sign-off or of a run", file=str(options.report)))
    code = 1 if found or wrong else 0
    if options.json_file is not None:
        _write_json(options.json_file, folder, found, signed, code)
    if not options.quiet:
        for file, fault in found:
            head = "differs" if of_another_version(fault) else "changed"
            _say(f"{head}: {visible(file, 300)}: {visible(fault, 600)}")
        for line in signed:
            _say(visible(line, 1000))
    if not found:
        _say(
            f"verified: every figure of this {what} follows from its evidence, and every file is as it was written"
        )
    else:
        files = len({file for file, _ in found})
        many, more = "s" if len(found) > 1 else "", "s" if files > 1 else ""
        print(f"NOT verified: {len(found)} finding{many} in {files} file{more}")
    if found and all(of_another_version(fault) for _, fault in found):
        _say(
            "no hash is broken, and another version or another build of evalkit wrote these files: verify with "
            "that one, to tell what it computes or lays out otherwise from what somebody changed"
        )
    if wrong:
        print("NOT verified: the signatures, as said above")
    return code


def _say(line: str) -> None:
    print(fitted(line, sys.stdout))


def _signatures(options: VerifyOptions, folder: Path) -> tuple[list[str], bool]:
    """(lines, something is wrong): a faulty signature always is; a missing one where signatures are asked for."""
    from evalkit.reporting.signatures import signature_lines
    from evalkit.signoff.allowed_signers import read_allowed_signers
    from evalkit.signoff.signatures import verify_signatures

    trusted = None if options.allowed_signers is None else read_allowed_signers(options.allowed_signers)
    signatures = verify_signatures(folder, trusted, now=datetime.now(UTC))
    wrong = signatures.faulty
    asked = options.signed or options.allowed_signers is not None
    if asked:
        valid = [finding for finding in signatures.findings if finding.valid]
        wrong = wrong or not valid or bool(signatures.missing) or signatures.decision is None
    if options.signed and signatures.decision != "approve":  # a valid rejection is no release
        wrong = True
    return signature_lines(signatures), wrong


def _write_json(path: Path, folder: Path, found: list[Finding], signed: list[str], code: int) -> None:
    from evalkit.tabular.write import write_atomic

    document = {
        "schema": "evalkit.verification/1",
        "folder": folder.name,
        "verified": code == 0,
        "findings": [{"file": file, "what": visible(what, 2000)} for file, what in found],
        "signatures": signed,
    }
    write_atomic(path, json.dumps(document, ensure_ascii=True, allow_nan=False, indent=1) + "\n")
