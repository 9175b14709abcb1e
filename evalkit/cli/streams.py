"""The two output streams of the process: whatever the locale says, text arrives and nothing breaks."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress

__all__ = ["flush", "give_up", "prepare"]


def prepare() -> None:
    """Make stdout and stderr take any text.

    Output is UTF-8, also where the locale is C. A terminal with another encoding, and an encoding that somebody
    asked for by `PYTHONIOENCODING`, are kept. A character that an encoding lacks is written as an escape.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            keep = "PYTHONIOENCODING" in os.environ or (stream.isatty() and stream.encoding.lower() not in _ASCII)
            stream.reconfigure(encoding=stream.encoding if keep else "utf-8", errors="backslashreplace")


_ASCII = frozenset({"ascii", "us-ascii", "ansi_x3.4-1968", "646"})


def flush() -> None:
    """Write out what stdout still holds, so that a failure to do so is seen here and not at the end of Python."""
    if sys.stdout is not None and not sys.stdout.closed:
        sys.stdout.flush()


def give_up() -> None:
    """Send what stdout still holds nowhere: its reader is gone, and Python must not complain at its end."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
