"""`evalkit sign`: a person's decision on a sign-off."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["sign"]


def sign(
    folder: Annotated[Path, typer.Argument(help="The folder that sign-off wrote.", metavar="SIGNOFF_DIR")],
    key: Annotated[
        Path,
        typer.Option(
            "--key", help="A private key: Ed25519 in PEM, or any SSH key (its .pub where the agent holds it)."
        ),
    ],
    role: Annotated[str, typer.Option("--role", help="The role that you sign in, such as approver.")],
    name: Annotated[str, typer.Option("--name", help="Your name, as the list of allowed signers has it.")],
    decision: Annotated[str, typer.Option("--decision", help="approve or reject.")],
    reason: Annotated[
        str | None,
        typer.Option("--reason", help="Why; needed where you decide otherwise than the computed verdict."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the name of the signature file only.")] = False,
) -> None:
    """Sign a decision on a sign-off: a new file signoff.<n>.sig.json; the report is not touched.

    Nothing is signed where a file of the folder is not as its hash says. The passphrase of a PEM key is taken from
    EVALKIT_KEY_PASSPHRASE; ssh-keygen asks for its own. Exit codes: 0 signed, 2 usage or input error.
    """
    from evalkit.workflows.sign_command import SignOptions, run

    raise typer.Exit(run(SignOptions(folder, key, role, name, decision, reason, quiet)))
