"""What people and CI read of a sign-off: HTML, Markdown, JUnit, terminal and exit code, all from signoff.json."""

from __future__ import annotations

from evalkit.reporting.signoff.checked import signoff_contradictions, signoff_exit_code
from evalkit.reporting.signoff.junit import render_signoff_junit
from evalkit.reporting.signoff.markdown import render_signoff_markdown
from evalkit.reporting.signoff.page import render_signoff_html
from evalkit.reporting.signoff.terminal import render_signoff_terminal

__all__ = [
    "render_signoff_html",
    "render_signoff_junit",
    "render_signoff_markdown",
    "render_signoff_terminal",
    "signoff_contradictions",
    "signoff_exit_code",
]
