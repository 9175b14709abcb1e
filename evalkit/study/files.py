"""Reading a small text file that a person wrote: UTF-8, a byte-order mark is fine, every refusal says where."""

from __future__ import annotations

from pathlib import Path

from evalkit.errors import Fault, InputError, visible

__all__ = ["MAX_BYTES", "line_of", "read_text"]

MAX_BYTES = 4_000_000
"""A study or price card beyond this size is something else by mistake."""


def line_of(text: str, index: int) -> int:
    """The physical line, from 1, of character `index`; `\\n`, `\\r\\n` and a lone `\\r` end a line."""
    head = text[:index]
    return head.count("\n") + head.count("\r") - head.count("\r\n") + 1


def read_text(path: str | Path) -> str:
    """The text of the file without its byte-order mark. Every reason it cannot be read is an `InputError`."""
    file = str(path)
    try:
        size = Path(path).stat().st_size
        if size <= MAX_BYTES:
            with Path(path).open("rb") as stream:  # a device tells no size, and may have no end
                raw = stream.read(MAX_BYTES + 1)
            size = max(size, len(raw))
    except FileNotFoundError:
        raise InputError(
            Fault("there is no such file", "check the name and the folder it is looked for in", file=file)
        ) from None
    except IsADirectoryError:
        raise InputError(Fault("this is a folder", "name the file in it", file=file)) from None
    except (OSError, ValueError) as error:
        reason = visible(getattr(error, "strerror", None) or error)
        raise InputError(
            Fault(f"cannot be read: {reason}", "check the path and its permissions", file=file)
        ) from None
    if size > MAX_BYTES:
        raise InputError(
            Fault(
                f"has {size:,} bytes, and at most {MAX_BYTES:,} are read",
                "check that this is the file you mean",
                file=file,
            )
        )
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(Fault("is UTF-16, and only UTF-8 is read", "save the file as UTF-8", file=file, line=1))
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        at = error.start + (3 if raw.startswith(b"\xef\xbb\xbf") else 0)
        before = raw[:at]
        line = before.count(b"\n") + before.count(b"\r") - before.count(b"\r\n") + 1
        raise InputError(
            Fault(
                f"byte offset {at:,} (value 0x{raw[at]:02x}) is not UTF-8",
                "save the file as UTF-8",
                file=file,
                line=line,
            )
        ) from None
    return text
