"""`evalkit sign-off`: runs under a gate policy, one verdict, one document."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["sign_off"]


def sign_off(
    runs: Annotated[list[Path], typer.Argument(help="Folders of finished runs.", metavar="RUN...")],
    policy: Annotated[Path, typer.Option("--policy", help="The gate policy (YAML) that the studies name.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of the sign-off (default: reports/signoff-<policy>).")
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write signoff.json here too.")] = None,
    junit: Annotated[Path | None, typer.Option("--junit", help="Write the gates as JUnit XML here too.")] = None,
    markdown: Annotated[Path | None, typer.Option("--markdown", help="Write the Markdown here too.")] = None,
    pdf: Annotated[Path | None, typer.Option("--pdf", help="Print the page as PDF (needs Chromium).")] = None,
    lang: Annotated[str, typer.Option("--lang", help="Language of page and Markdown: en or ko.")] = "en",
    fail_on: Annotated[
        str,
        typer.Option(
            "--fail-on", help="What ends with a code other than 0: insufficient (and reject), reject, or never."
        ),
    ] = "insufficient",
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the verdict only.")] = False,
) -> None:
    """Gather runs under a gate policy and decide: approve, reject, or not enough evidence.

    Every figure is computed again from the evidence of each run first. Exit codes: 0 approved, 1 rejected, 2 usage
    or input error (also a run that is not what its evidence gives), 3 insufficient evidence.
    """
    from evalkit.workflows.signoff_command import SignOffOptions, run_sign_off

    raise typer.Exit(
        run_sign_off(
            SignOffOptions(policy, tuple(runs), out, json_file, junit, markdown, pdf, lang, fail_on, quiet)
        )
    )
