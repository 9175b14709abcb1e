"""A report as PDF, printed by a Chromium of this machine: the one part of a report that needs a program."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from evalkit.errors import Fault, InputError, visible

__all__ = ["chromium", "write_pdf"]

VARIABLE: Final = "EVALKIT_CHROMIUM"
_NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "msedge")
_TIMEOUT_S: Final = 120
# It prints one file of this machine: no profile of the user, no sign-in, no update, no name of a host resolved.
_OPTIONS: Final = (
    "--headless",
    "--disable-gpu",
    "--no-first-run",
    "--no-pdf-header-footer",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--disable-quic",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)


def chromium() -> Path:
    """The Chromium to print with: the one that EVALKIT_CHROMIUM names, else the first on the PATH.

    Raises InputError, which says how to get one, where there is none.
    """
    named = os.environ.get(VARIABLE)
    if named:
        found = shutil.which(named)
        if found is None:
            what = f"{VARIABLE} names {visible(named)!r}, which is no program"
            raise InputError(Fault(what, "name the program of a Chromium or Chrome, or unset it"))
        return Path(found)
    for name in _NAMES:
        found = shutil.which(name)
        if found is not None:
            return Path(found)
    fix = f"install Chromium or Chrome (Debian: apt-get install chromium), or name its program in {VARIABLE}"
    raise InputError(Fault("a PDF is printed by Chromium, and none was found", fix))


def write_pdf(page: Path, target: Path, *, browser: Path | None = None) -> None:
    """Print the report `page` (HTML) to `target` as the A4 pages that its own style sheet lays out.

    Raises InputError where there is no Chromium, or where it writes no PDF. The bytes of a PDF depend on the
    browser and the time; the page and its digest stay what is signed.
    """
    program = browser or chromium()
    if not page.is_file():
        raise InputError(Fault("is not a file", "name the report to print", file=str(page)))
    # As root Chromium refuses to start with its sandbox.
    sandbox = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory(prefix="evalkit-pdf-", ignore_cleanup_errors=True) as folder:
        made = Path(folder) / "page.pdf"
        command = [
            str(program),
            *_OPTIONS,
            *sandbox,
            f"--user-data-dir={folder}/profile",
            f"--print-to-pdf={made}",
            page.resolve().as_uri(),
        ]
        try:
            done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            raise _failed(page, f"Chromium did not finish within {_TIMEOUT_S} s") from None
        except OSError as error:
            raise _failed(page, f"Chromium could not be started: {error.strerror}") from None
        content = made.read_bytes() if made.is_file() else b""
        if done.returncode != 0 or not content.startswith(b"%PDF"):
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            last = f": {visible(said[-1], 200)}" if said else ""
            raise _failed(page, f"Chromium wrote no PDF (exit code {done.returncode}){last}")
        try:
            target.write_bytes(content)
        except OSError as error:
            raise InputError(
                Fault(f"cannot be written: {error.strerror}", "name a file that can be written", file=str(target))
            ) from None


def _failed(page: Path, what: str) -> InputError:
    fix = f"open the page in a browser and print it there, or name another Chromium in {VARIABLE}"
    return InputError(Fault(what, fix, file=str(page)))
