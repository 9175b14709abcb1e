"""`evalkit verify`: whether a sign-off or a run still is what its evidence gives."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["verify"]


def verify(
    report: Annotated[Path, typer.Argument(help="The folder of a sign-off or of a run, or a file in it.")],
    allowed_signers: Annotated[
        Path | None,
        typer.Option("--allowed-signers", help="Keys that count (ssh allowed_signers, or one public key)."),
    ] = None,
    signed: Annotated[
        bool, typer.Option("--signed", help="Everybody who must sign must have approved; needs --allowed-signers.")
    ] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the findings as JSON.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the result only.")] = False,
) -> None:
    """Compute every figure again from the evidence, check hashes and signatures, and name whatever was changed.

    Exit codes: 0 all is as it was written, 1 something differs (named), 2 usage or input error.
    """
    from evalkit.workflows.verify_command import VerifyOptions, run_verify

    raise typer.Exit(run_verify(VerifyOptions(report, allowed_signers, signed, json_file, quiet)))
