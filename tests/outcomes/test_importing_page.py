"""The commands of docs/importing.md are options that exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer

from evalkit.cli.import_ import app as import_app
from evalkit.cli.labels import app as labels_app

APPS = {"import": import_app, "labels": labels_app}


def commands(page: str) -> list[list[str]]:
    found = []
    for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL):
        lines = re.sub(r"\$\([^)]*\)", "files.csv", block.replace("\\\n", " ")).splitlines()
        found += [shlex.split(line)[1:] for line in lines if line.startswith("evalkit ")]
    return found


def test_every_command_parses(repo: Path) -> None:
    page = (repo / "docs" / "importing.md").read_text(encoding="utf-8")
    given = commands(page)
    assert len(given) >= 7
    for group, name, *arguments in given:
        command = typer.main.get_command(APPS[group])
        subcommand = command.commands[name]  # type: ignore[attr-defined]
        assert subcommand.make_context(name, list(arguments)).params


def test_the_page_names_no_option_that_is_not_there(repo: Path) -> None:
    page = (repo / "docs" / "importing.md").read_text(encoding="utf-8")
    known = {
        option
        for app in APPS.values()
        for command in typer.main.get_command(app).commands.values()  # type: ignore[attr-defined]
        for parameter in command.params
        for option in parameter.opts
    }
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", page))
    assert named <= known
    if not named:
        pytest.fail("no option was found on the page")
