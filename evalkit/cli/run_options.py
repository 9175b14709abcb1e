"""Options that the commands which judge a study have in common, each said in one place."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["Json", "Junit", "Markdown", "MaxSpend", "Models", "NoEvidence", "Out", "Quiet", "Seed"]

Out = Annotated[Path | None, typer.Option("--out", help="Folder for the report (default: reports/<study>).")]
Json = Annotated[Path | None, typer.Option("--json", help="Write result.json here too.")]
Junit = Annotated[Path | None, typer.Option("--junit", help="Write the gates as JUnit XML.")]
Markdown = Annotated[Path | None, typer.Option("--markdown", help="Write a Markdown summary.")]
Seed = Annotated[int | None, typer.Option("--seed", help="Seed instead of the study's.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print the verdict only.")]
MaxSpend = Annotated[
    str | None,
    typer.Option("--max-spend", metavar="USD", help="Where models are called: USD that is never passed."),
]
Models = Annotated[
    Path | None, typer.Option("--models", help="Where models are called: folder of local models' files.")
]
NoEvidence = Annotated[
    bool, typer.Option("--no-evidence", help="Keep no evidence.zip; a sign-off then stays open.")
]
