"""The sign-off command: run folders and a policy in, a folder with the document and all that it stands on out."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalkit.errors import Fault, InputError, fitted, visible
from evalkit.signoff.digest import MANIFEST, SIGNOFF
from evalkit.signoff.policy import read_policy
from evalkit.signoff.redacted import document_bytes
from evalkit.signoff.signing import signature_files
from evalkit.workflows.provenance import utc_now
from evalkit.workflows.run_check import FILES
from evalkit.workflows.run_files import refuse_to_overwrite, report_folder, write_files
from evalkit.workflows.signoff import build_document, copied_files, gather

__all__ = ["FAIL_ON", "JUNIT", "MARKDOWN", "PAGE", "SignOffOptions", "manifest_rows", "run_sign_off", "views"]

PAGE, MARKDOWN, JUNIT = "signoff.html", "signoff.md", "junit.xml"
FAIL_ON = {"insufficient": {"reject", "insufficient_evidence"}, "reject": {"reject"}, "never": set[str]()}
"""The verdicts that end with a code other than 0, by --fail-on."""


@dataclass(frozen=True)
class SignOffOptions:
    """What the command line gave; None means not given."""

    policy: Path
    runs: tuple[Path, ...] = field(default_factory=tuple)
    out: Path | None = None
    json_file: Path | None = None
    junit: Path | None = None
    markdown: Path | None = None
    pdf: Path | None = None
    lang: str = "en"
    fail_on: str = "insufficient"
    quiet: bool = False


def run_sign_off(options: SignOffOptions) -> int:
    """Sign off; returns the exit code of the verdict. InputError, and nothing written, for what cannot be used."""
    from evalkit.reporting.language import LANGUAGES

    if options.lang not in LANGUAGES:
        what = f'"{visible(options.lang, 40)}" is no language of the document'
        raise InputError(Fault(what, f"write one of {', '.join(LANGUAGES)}", field="--lang"))
    if options.fail_on not in FAIL_ON:
        what = f'"{visible(options.fail_on, 40)}" is no condition'
        raise InputError(Fault(what, f"write one of {', '.join(FAIL_ON)}", field="--fail-on"))
    policy = read_policy(options.policy)
    folder = options.out if options.out is not None else report_folder(f"signoff-{policy.name}")
    _refuse_signed(folder)
    today = None if policy.baseline is None else policy.baseline.today
    gathered = gather(policy, options.runs, today)
    copies = copied_files(gathered)
    document = build_document(gathered, utc_now(), manifest_rows(copies))
    rendered = views(document, options.lang)
    files = {**copies, SIGNOFF: document_bytes(document), **rendered}
    files[MANIFEST] = document_bytes({"files": manifest_rows(files)})
    written = {folder / name: content for name, content in files.items()}
    asked = {options.json_file: SIGNOFF, options.markdown: MARKDOWN, options.junit: JUNIT}
    extra = {path: files[name] for path, name in asked.items() if path is not None}
    read = [options.policy, *(run / name for run in [*options.runs, *_one(today)] for name in FILES.values())]
    refuse_to_overwrite(read, [*written, *extra, *_one(options.pdf)])
    browser = _browser(options)
    write_files({**written, **extra})
    if options.pdf is not None:
        from evalkit.reporting.pdf import write_pdf

        write_pdf(folder / PAGE, options.pdf, browser=browser)
    return _say(options, document, folder)


def _browser(options: SignOffOptions) -> Path | None:
    """The browser that prints the PDF, looked for before anything is written."""
    if options.pdf is None:
        return None
    from evalkit.reporting.pdf import chromium

    return chromium()


def _one(path: Path | None) -> Sequence[Path]:
    return [] if path is None else [path]


def _refuse_signed(folder: Path) -> None:
    """A document that somebody signed is never written over."""
    if folder.is_dir() and signature_files(folder):
        what = "holds a signed sign-off, which is never written over"
        raise InputError(Fault(what, "name another folder with --out", file=str(folder)))


def manifest_rows(files: Mapping[str, bytes]) -> list[dict[str, Any]]:
    """{path, sha256, bytes} of files, by path."""
    return [
        {"path": name, "sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        for name, content in sorted(files.items())
    ]


def views(document: Mapping[str, Any], lang: str) -> dict[str, bytes]:
    """Page, Markdown and JUnit of the document, by file name."""
    from evalkit.reporting.signoff import render_signoff_html, render_signoff_junit, render_signoff_markdown

    return {
        PAGE: render_signoff_html(document, lang).encode("utf-8"),
        MARKDOWN: render_signoff_markdown(document, lang).encode("utf-8"),
        JUNIT: render_signoff_junit(document).encode("utf-8"),
    }


def _say(options: SignOffOptions, document: Mapping[str, Any], folder: Path) -> int:
    from evalkit.reporting.signoff import render_signoff_terminal, signoff_exit_code

    verdict = document["verdict"]
    if options.quiet:
        print(visible(verdict["headline"], 300))
    else:
        from rich.console import Console

        console = Console(highlight=False, markup=False, soft_wrap=False, legacy_windows=False)
        with console.capture() as printed:
            render_signoff_terminal(document, console, options.lang)
        print(printed.get(), end="")
        print(f"sign-off: {visible(folder / PAGE, 400)}")
    code = signoff_exit_code(document)
    if code and verdict["decision"] not in FAIL_ON[options.fail_on]:
        said = verdict["decision"].replace("_", " ")
        told = f"note: the verdict is {said}; --fail-on {options.fail_on} makes it exit code 0"
        print(fitted(told, sys.stderr), file=sys.stderr)
        return 0
    return code
