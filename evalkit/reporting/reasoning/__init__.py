"""What people and CI read of a ladder: page, Markdown, terminal, and the sentences that advise."""

from __future__ import annotations

from evalkit.reporting.reasoning.advice import Advice, advice
from evalkit.reporting.reasoning.checked import ladder_contradictions
from evalkit.reporting.reasoning.markdown import render_ladder_markdown
from evalkit.reporting.reasoning.page import render_ladder_html
from evalkit.reporting.reasoning.terminal import render_ladder_terminal

__all__ = [
    "Advice",
    "advice",
    "ladder_contradictions",
    "render_ladder_html",
    "render_ladder_markdown",
    "render_ladder_terminal",
]
