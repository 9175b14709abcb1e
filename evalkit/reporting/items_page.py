"""All items of a run as static pages: the row of an item, a page of rows, and the page that leads to all others.

A page loads nothing and runs nothing. What it shows is chosen by following links: every selection (all items, a
risk class, a flag, both) has pages of its own, so that no server and no script is needed. Rows are rendered once
and put into each page as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, TypeVar, cast

from markupsafe import Markup

from evalkit.errors import visible
from evalkit.reporting import numbers, text
from evalkit.reporting.environment import asset, environment, page_policy
from evalkit.reporting.tables import risk_ranks
from evalkit.signoff.run_folder import RunItem

__all__ = ["ItemsFrame", "Selection", "frame_of", "render_index", "render_page", "row_renderer"]

_KEPT, _LONG = 4096, 2_000
"""How many renderings are kept, and of how many characters at most: a file may hold a million in each row."""

F = TypeVar("F", bound=Callable[..., Any])

PAGES_AROUND = 3
"""Pages to the left and right of the present one that have a link."""

ROUTED = ("Required, routed", "Status", "Score", "Loss", "Cost", "Time")
ARMS = ("Passed by arm", "Status", "Cost", "Time")
"""The columns behind the item itself, of a router and of a ladder."""


def _kept(function: F) -> F:
    """`function` with what it gave for short texts kept."""
    kept = lru_cache(_KEPT)(function)

    def call(*given: Any) -> Any:
        return function(*given) if _characters(given) > _LONG else kept(*given)

    return cast(F, call)


def _characters(value: object) -> int:
    if isinstance(value, str):
        return len(value)
    return sum(map(_characters, value)) if isinstance(value, tuple) else 0


@dataclass(frozen=True, slots=True)
class Selection:
    """Some of the items in an order, and how many: `risk` and `flag` are None for all of them.

    given: in the order of the labels, not the worst first. code: what its file names begin with.
    """

    code: str
    risk: str | None
    flag: str | None
    given: bool
    items: int

    def file(self, page: int) -> str:
        """The name of its page `page`, which counts from 1."""
        return f"{self.code}{page:04d}.html"


@dataclass(frozen=True)
class ItemsFrame:
    """What all pages of a run have in common. only: the flags that were asked for, of which an item has one.

    back: where the report is, seen from the pages; None where they lie elsewhere.
    """

    study: str
    arm: str | None
    items: int
    selections: Mapping[tuple[str | None, str | None, bool], Selection]
    risks: tuple[str, ...]
    flags: tuple[str, ...]
    only: tuple[str, ...]
    back: str | None

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns behind the item itself."""
        return ROUTED if self.arm is None else ARMS

    @property
    def style(self) -> str:
        """The style sheet: that of the reports, and on a narrow screen the name of each value before it."""
        return _style(self.columns)


def frame_of(
    document: Mapping[str, Any],
    arm: str | None,
    selections: Sequence[Selection],
    *,
    only: Sequence[str] = (),
    back: str | None = None,
) -> ItemsFrame:
    """The frame of a run with this result.json; risks and flags are those of the selections, in their order."""
    return ItemsFrame(
        study=text.line(document["study"], 120),
        arm=None if arm is None else text.line(arm, 60),
        items=int(document["counts"]["items"]),
        selections={(one.risk, one.flag, one.given): one for one in selections},
        risks=tuple(dict.fromkeys(one.risk for one in selections if one.risk is not None)),
        flags=tuple(dict.fromkeys(one.flag for one in selections if one.flag is not None)),
        only=tuple(only),
        back=back,
    )


def row_renderer(document: Mapping[str, Any], arm: str | None) -> Callable[[RunItem], bytes]:
    """Renders an item as a row of the table, UTF-8, every text escaped and cut."""
    macro: Any = environment().get_template("items/row.html").module
    ranks = risk_ranks(document) if arm is None else {}

    # Few different values stand in many rows: what they render to is kept.
    @_kept
    def about(risk: str, category: str, group: str) -> Markup:
        names = text.line(risk, 40), ranks.get(risk, 3), text.line(category, 60), text.line(group, 60)
        made: Markup = macro.about(*names)
        return made

    @_kept
    def routed(required: str, tier: str, flags: tuple[str, ...]) -> Markup:
        names = text.line(required, 32), text.line(tier, 32)
        made: Markup = macro.routed(*names, [text.words(flag) for flag in flags])
        return made

    @_kept
    def passed(arms: tuple[tuple[str, float | None], ...], flags: tuple[str, ...]) -> Markup:
        rates = [(text.line(name, 30), numbers.percent(share)) for name, share in arms]
        made: Markup = macro.passed(rates, [text.words(flag) for flag in flags])
        return made

    def row(item: RunItem) -> bytes:
        group = "" if item.group == item.id else item.group or ""
        figures = [_words(item.status or ""), _shown(item.cost_usd, _usd), _shown(item.task_s, _seconds)]
        if arm is None:
            fared = routed(item.required or "", item.routed, item.flags)
            figures[1:1] = [_shown(item.score, numbers.threshold), _shown(item.loss_usd, _usd)]
        else:
            fared = passed(item.arms, item.flags)
        made = macro.row(visible(item.id, 120), about(item.risk or "", item.category or "", group), fared, figures)
        return str(made).encode("utf-8")

    return row


def _shown(value: float | None, form: Callable[[float], str]) -> str:
    """A figure of an item; nothing where it is unknown."""
    return "" if value is None else form(value)


def render_page(frame: ItemsFrame, selection: Selection, page: int, pages: int, first: int, rows: bytes) -> str:
    """Page `page` of `pages` of a selection. first: its first row's place in the selection, counted from 1.

    rows: what `row_renderer` made, joined.
    """
    body = rows.decode("utf-8")
    n = body.count("<tr>")
    return _render(
        "items/page.html",
        frame,
        here=selection,
        title=_title(frame, selection),
        range=f"{first:,} to {first + n - 1:,} of {selection.items:,}" if n else "none",
        page=page,
        pages=pages,
        pager=_pager(selection, page, pages),
        # Rows of this package's own template, escaped there.
        rows=Markup(body),
    )


def render_index(frame: ItemsFrame) -> str:
    """The page that leads to all others: how many items each selection has, with a link to the worst of them."""
    every = frame.selections[None, None, False]
    table = [
        (
            "all" if risk is None else text.line(risk, 40),
            [_count(frame, risk, flag) for flag in (None, *frame.flags)],
        )
        for risk in (None, *frame.risks)
    ]
    return _render(
        "items/index.html",
        frame,
        here=None,
        every=every,
        given=frame.selections[None, None, True],
        table=table,
        flag_names=[text.words(flag) for flag in frame.flags],
        total=f"{frame.items:,}",
        chosen=f"{every.items:,}",
    )


def _render(template: str, frame: ItemsFrame, **more: Any) -> str:
    style = frame.style
    context = {
        "frame": frame,
        "columns": frame.columns,
        "policy": page_policy(style, None),
        "style": Markup(style),  # a file of this package, not data
        "only": [text.words(flag) for flag in frame.only],
        "risk_links": [] if more["here"] is None else _links(frame, more["here"], "risk"),
        "flag_links": [] if more["here"] is None else _links(frame, more["here"], "flag"),
    }
    return environment().get_template(template).render(context | more)


def _links(frame: ItemsFrame, here: Selection, what: str) -> list[tuple[str, str, str, bool]]:
    """(name, count, file, whether it is the present one) of the selections that differ in `what` alone; file is
    "" where a selection would be empty."""
    links = []
    for value in (None, *(frame.risks if what == "risk" else frame.flags)):
        risk, flag = (value, here.flag) if what == "risk" else (here.risk, value)
        found = frame.selections.get((risk, flag, False))
        name = "all" if value is None else text.words(value) if what == "flag" else text.line(value, 40)
        current = (risk, flag) == (here.risk, here.flag) and not here.given
        links.append((name, f"{found.items:,}" if found else "0", found.file(1) if found else "", current))
    return links


def _count(frame: ItemsFrame, risk: str | None, flag: str | None) -> tuple[str, str]:
    found = frame.selections.get((risk, flag, False))
    return (f"{found.items:,}", found.file(1)) if found else ("0", "")


def _title(frame: ItemsFrame, selection: Selection) -> str:
    bits = [text.line(selection.risk, 40)] if selection.risk is not None else []
    if selection.flag is not None:
        bits.append(text.words(selection.flag))
    noun = "items" if frame.arm is None else "tasks"
    if selection.given:
        return f"All {noun}, in the order of the labels"
    return f"{'All ' + noun if not bits else ', '.join(bits)}, worst first"


def _pager(selection: Selection, page: int, pages: int) -> list[tuple[str, str]]:
    """(shown, file) of the links between pages; file is "" for the present one and "..." where pages are left
    out."""
    near = range(max(1, page - PAGES_AROUND), min(pages, page + PAGES_AROUND) + 1)
    found: list[tuple[str, str]] = []
    before = 0
    for number in sorted({1, *near, pages}):
        if number != before + 1:
            found.append(("…", "..."))
        found.append((f"{number:,}", "" if number == page else selection.file(number)))
        before = number
    return found


@cache
def _style(columns: tuple[str, ...]) -> str:
    names = "".join(
        f'.list td:nth-child({place}):not(:empty)::before{{content:"{name}"}}\n'
        for place, name in enumerate(columns, 2)
    )
    printed = asset("print.css").replace("evalkit routing report", "evalkit items").replace("VERDICT-WORD", "")
    narrow = f"@media screen and (max-width:44rem){{\n{names}}}\n"
    return asset("report.css") + printed + asset("items/items.css") + narrow


_words = _kept(text.words)
_usd = lru_cache(_KEPT)(numbers.usd)
_seconds = lru_cache(_KEPT)(numbers.seconds)
