"""What people and CI read of a result: HTML, JSON, JUnit, Markdown, terminal and exit code, all from one dict."""

from __future__ import annotations

from .junit import render_junit
from .markdown import render_markdown
from .page import render_html
from .result_json import dump_json
from .terminal import render_terminal
from .verdict import contradictions, exit_code

__all__ = [
    "contradictions",
    "dump_json",
    "exit_code",
    "render_html",
    "render_junit",
    "render_markdown",
    "render_terminal",
]
