"""Write the command reference, docs/cli.md, from what every command says to --help; --check only compares."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from evalkit.cli.app import app

PAGE = Path(__file__).with_name("cli.md")
HEAD = """# Commands

Made from `--help` by `docs/cli_reference.py`; `make check` refuses a page that differs.
"""


def sections(command: Any, path: str, parent: Any = None) -> Iterator[str]:
    """The help of the command and of all commands below it, one section each, the same in every terminal."""
    ctx = command.make_context(path, [], parent=parent, resilient_parsing=True)
    ctx.terminal_width = ctx.max_content_width = 100
    ctx.info_name = path
    ctx.parent = None
    text = "\n".join(line.rstrip() for line in command.get_help(ctx).splitlines())
    yield f"## {path}\n\n```text\n{text.strip()}\n```\n"
    if hasattr(command, "list_commands"):
        for name in command.list_commands(ctx):
            yield from sections(command.get_command(ctx, name), f"{path} {name}")


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *sections(typer.main.get_command(app), "evalkit")])


def main() -> int:
    """Write the page, or compare it; 1 when it differs."""
    if sys.argv[1:] != ["--check"]:
        PAGE.write_text(page(), encoding="utf-8")
        return 0
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == page():
        return 0
    print("docs/cli.md differs from --help. Fix: run python docs/cli_reference.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
