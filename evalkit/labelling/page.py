"""The page itself: its frame in one language, with the messages that its script says."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from evalkit.labelling.decisions import MOST_NOTE, Header
from evalkit.labelling.shown import name

__all__ = ["MESSAGES", "N_", "asset", "render_page"]


def N_(message: str) -> str:  # noqa: N802  the name that extractors of messages know
    """Marks a constant as a message to translate; returns it as it is."""
    return message


MESSAGES = {
    "item": N_("Item {n} of {total}"),
    "prompt": N_("Request"),
    "reference": N_("Reference answer"),
    "reply": N_("Reply {letter}"),
    "good": N_("good enough"),
    "notGood": N_("not good enough"),
    "unmarked": N_("not marked yet"),
    "empty": N_("(no text)"),
    "silentOne": N_("One candidate gave no reply; it is not good enough."),
    "silentMany": N_("{n} candidates gave no reply; they are not good enough."),
    "noneReplied": N_("No candidate gave a reply."),
    "chooseReply": N_("Mark every reply that is good enough, or say that none is (X)."),
    "chooseTier": N_("Choose the least tier that is good enough, or say that none is (X)."),
    "chooseRisk": N_("Choose the risk class."),
    "saved": N_("Saved. {done} of {total} decided."),
    "progress": N_("{done} of {total} decided"),
    "undone": N_("Undone. Item {n} is open again."),
    "nothingToUndo": N_("There is nothing to undo."),
    "decided": N_("Decided; saving again replaces it."),
    "draft": N_("Chosen before, not saved yet."),
    "fromFile": N_("The file says {risk}."),
    "first": N_("First decision"),
    "second": N_("Second decision"),
    "saidGood": N_("Good enough: {letters}"),
    "saidNone": N_("None is good enough"),
    "saidTier": N_("Least tier: {tier}"),
    "saidRisk": N_("Risk class: {risk}"),
    "saidNote": N_("Note: {note}"),
    "take": N_("Take it"),
    "lost": N_(
        "The program does not answer. What is not in the count above is not saved. "
        "Start it again and open its new address."
    ),
    "stale": N_("Another window has decided since. This page now shows the state on disk."),
    "refused": N_("Not saved: {why}"),
    "start": N_("This is the first item."),
    "end": N_("This is the last item."),
    "allDone": N_("All {total} items are decided"),
    "keysOff": N_("Single keys are off."),
    "keysOn": N_("Single keys are on."),
}
"""What the script says, by the name it knows; {n} and the like are put in there."""


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("evalkit.labelling", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


@cache
def asset(file: str) -> str:
    """The source of the style sheet or script of the page."""
    return files("evalkit.labelling").joinpath("static", file).read_text(encoding="utf-8")


def render_page(title: str, header: Header, translate: Callable[[str], str], lang: str) -> str:
    """The page as one HTML document, without any item and without the token.

    `translate` gives a message in the language `lang`. Nothing that the page is told here or later says which
    reply is of which tier; tiers are named only where they are chosen by name.
    """
    words = {key: translate(message) for key, message in MESSAGES.items()}
    return (
        _environment()
        .get_template("label.html")
        .render(
            _=translate,
            lang=lang,
            title=name(title, 120),
            annotator=name(header.annotator, 80),
            by_reply=header.by == "replies",
            tiers=[name(tier, 80) for tier in header.tiers],
            risks=[name(risk, 80) for risk in header.risk_classes],
            adjudicating=bool(header.adjudicates),
            most_note=MOST_NOTE,
            words=Markup(_script_json(words)),
            setting=Markup(_script_json(_setting(header))),
        )
    )


def _setting(header: Header) -> dict[str, object]:
    tiers: Sequence[str] = header.tiers if header.by == "tier" else ()
    return {"by": header.by, "tiers": list(tiers), "risks": list(header.risk_classes)}


def _script_json(value: object) -> str:
    """JSON that can stand in a `<script type="application/json">` element."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
