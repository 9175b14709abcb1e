"""Commands that are imported when they are called.

The list of commands and their summaries are known without an import, so that `--help` costs nothing and a slow
import in one command slows no other.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperGroup

__all__ = ["LazyCommand", "LazyGroup", "WholeGroup"]


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """Where a command is: `attribute` of `module` is a function, or a `typer.Typer` with commands of its own."""

    name: str
    module: str
    attribute: str
    summary: str

    def load(self) -> Any:
        """Import the command and make it ready to be called."""
        target = getattr(import_module(self.module), self.attribute)
        if isinstance(target, typer.Typer):
            group = target
        else:
            group = typer.Typer()
            group.command(self.name)(target)
        # One look for all: plain help, which reads the same in a terminal, a pipe and the docs.
        group.rich_markup_mode = None
        group._add_completion = False
        command: Any = typer.main.get_command(group)
        command.name = self.name
        command.short_help = self.summary
        return command


class WholeGroup(TyperGroup):
    """A group whose help says what each command does in a whole sentence, on several lines where it is long."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the table of commands."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.get_short_help_str(10_000)) for name, command in found if command])


class LazyGroup(TyperGroup):
    """A group of lazy commands; a subclass names them in `lazy_commands`."""

    lazy_commands: ClassVar[tuple[LazyCommand, ...]] = ()

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        # Typer looks up the names here for its "Did you mean ...?".
        self.commands = dict.fromkeys((command.name for command in self.lazy_commands), self)

    def list_commands(self, ctx: Any) -> list[str]:
        """The names in the order in which they are declared."""
        return [command.name for command in self.lazy_commands]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name, imported now, or None."""
        return next((command.load() for command in self.lazy_commands if command.name == cmd_name), None)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the table of commands without importing one."""
        with formatter.section("Commands"):
            formatter.write_dl([(command.name, command.summary) for command in self.lazy_commands])
