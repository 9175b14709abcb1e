"""The prompt of a judge: a template from the rubric, filled with the item and the answer, which are data.

Only the rubric's own text is a template. What is put in is never rendered: braces and tags in it reach the judge
as they are. The template language is cut down to what a prompt needs, so that no template can run code, reach
into an object, or grow without a bound; anything else is refused when the rubric is read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from evalkit.errors import Fault, InputError, visible
from evalkit.grading.items import Item

__all__ = ["MAX_PROMPT", "MAX_TEMPLATE", "JudgePrompt", "block", "prompt_values"]

MAX_TEMPLATE = 20_000
"""The most characters of a template."""

MAX_PROMPT = 400_000
"""The most characters of a filled prompt; an answer that makes it longer is not sent to the judge."""

_PLAIN = ("id", "prompt", "messages", "reference", "category", "metadata", "answer")
_PAIRWISE = ("id", "prompt", "messages", "category", "metadata", "first", "second")
_FILTERS = ("block", "json", "trim", "upper", "lower", "length", "default")
_TESTS = ("defined", "none", "string", "mapping", "sequence")
_NODES = {
    "Template", "Output", "TemplateData", "Name", "Getattr", "Getitem", "Const", "Filter", "Test", "If", "For",
    "CondExpr", "Compare", "Operand", "And", "Or", "Not",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class JudgePrompt:
    """The source of a template; a `pairwise` one has `first` and `second` for `answer` and `reference`."""

    source: str
    pairwise: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names that a template may use."""
        return _PAIRWISE if self.pairwise else _PLAIN

    def problems(self) -> list[tuple[int, str, str]]:
        """(line of the template, what is wrong, how to put it right) for everything that is refused."""
        if len(self.source) > MAX_TEMPLATE:
            what = f"has {len(self.source):,} characters, and at most {MAX_TEMPLATE:,} are taken"
            return [(1, what, "write a shorter prompt")]
        from jinja2 import TemplateSyntaxError

        try:
            tree = _environment().parse(self.source)
        except TemplateSyntaxError as error:
            fix = "correct the tag; {{ answer }} puts in a value, {% raw %}...{% endraw %} keeps braces"
            return [(error.lineno, f"is no template: {visible(error.message)}", fix)]
        except RecursionError:
            return [(1, "is nested too deeply", "write a simpler prompt")]
        found = sorted(set(_walk(tree, self.names, frozenset())))
        needed = ("first", "second") if self.pairwise else ("answer",)
        used = _used(tree)
        found += [
            (1, f"never shows {name} to the judge", f"put {{{{ {name} }}}} where it belongs")
            for name in needed
            if name not in used
        ]
        return found

    def render(self, values: Mapping[str, Any]) -> str | None:
        """The filled prompt; None where it would be longer than `MAX_PROMPT`.

        Raises `InputError` where the template asks for something that this item does not have.
        """
        from jinja2 import UndefinedError
        from jinja2.exceptions import SecurityError

        pieces, length = [], 0
        try:
            for piece in _template(self.source).generate(dict(values)):
                length += len(piece)
                if length > MAX_PROMPT:
                    return None
                pieces.append(piece)
        except UndefinedError as error:
            what = f"the judge's prompt asks for something that is not there: {visible(error)}"
            fix = "give the item what is missing, or write {% if ... is defined %} around it"
            raise InputError(Fault(what, fix, id=str(values.get("id", "")))) from None
        except (SecurityError, TypeError, ValueError) as error:
            what = f"the judge's prompt cannot be filled: {visible(error)}"
            raise InputError(Fault(what, "correct the prompt or the item", id=str(values.get("id", "")))) from None
        return "".join(pieces)


def prompt_values(item: Item, *, reference: str | None, **answers: str) -> dict[str, Any]:
    """What a template may show: plain data of the item, and the answers. Nothing of how an answer came about."""
    values = {
        "id": item.id,
        "prompt": item.prompt if item.prompt is not None else _last_user_turn(item),
        "messages": [dict(message) for message in item.messages],
        "category": item.category,
        "metadata": dict(item.metadata),
        "reference": reference,
    }
    return {name: value for name, value in values.items() if value is not None} | answers


def block(value: object) -> str:
    """`value` between two marks that do not stand in it, so that no text can pretend that its block has ended.

    >>> print(block("low"))
    <data-b4ab33>
    low
    </data-b4ab33>
    """
    text = value if isinstance(value, str) else _json(value)
    mark, turn = "", 0
    while not mark or mark in text:
        mark = hashlib.sha256(f"{turn}:{text}".encode("utf-8", "surrogatepass")).hexdigest()[:6]
        turn += 1
    return f"<data-{mark}>\n{text}\n</data-{mark}>"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _last_user_turn(item: Item) -> str | None:
    turns = [message.get("content") for message in item.messages if message.get("role") == "user"]
    return turns[-1] if turns and isinstance(turns[-1], str) else None


@lru_cache(maxsize=1)
def _environment() -> Any:
    from jinja2 import StrictUndefined, Undefined
    from jinja2.runtime import LoopContext
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Data(ImmutableSandboxedEnvironment):
        """A dot and a bracket look up a key or a place of plain data, and never an attribute of an object."""

        def getattr(self, obj: Any, attribute: str) -> Any:
            return (
                super().getattr(obj, attribute) if isinstance(obj, LoopContext) else self.getitem(obj, attribute)
            )

        def getitem(self, obj: Any, argument: Any) -> Any:
            try:
                return (
                    obj[argument]
                    if isinstance(obj, dict | list | Undefined)
                    else self.undefined(obj=obj, name=argument)
                )
            except (LookupError, TypeError):
                return self.undefined(obj=obj, name=argument)

    # No escaping: a prompt is no HTML, and the judge has to see the answer byte for byte.
    found = Data(autoescape=False, undefined=StrictUndefined, keep_trailing_newline=True, auto_reload=False)
    found.globals.clear()
    found.filters = {name: found.filters[name] for name in _FILTERS if name in found.filters}
    found.filters |= {"block": _filter(block), "json": _filter(_json)}
    found.tests = {name: found.tests[name] for name in _TESTS}
    return found


def _filter(function: Any) -> Any:
    from jinja2 import Undefined

    def run(value: object) -> str:
        if isinstance(value, Undefined):
            str(value)  # raises: what is missing is not put in as something else
        return str(function(value))

    return run


@lru_cache(maxsize=64)
def _template(source: str) -> Any:
    return _environment().from_string(source)


def _walk(node: Any, names: tuple[str, ...], loops: frozenset[str]) -> Iterator[tuple[int, str, str]]:
    from jinja2 import nodes

    kind = type(node).__name__
    if kind not in _NODES:
        what = f"uses {_called(node)}, which no prompt needs"
        yield node.lineno, what, "use only {{ name }}, name.field, {% if %}, {% for %} and the filters of the docs"
        return
    if isinstance(node, nodes.Name) and node.name not in names and node.name not in loops:
        what = f"knows nothing of the name {visible(node.name)!r}"
        yield node.lineno, what, f"use one of {', '.join(names)}"
    if isinstance(node, nodes.Filter) and node.name not in _FILTERS:
        yield node.lineno, f"uses the filter {visible(node.name)!r}", f"use one of {', '.join(_FILTERS)}"
    if isinstance(node, nodes.Test) and node.name not in _TESTS:
        yield node.lineno, f"uses the test {visible(node.name)!r}", f"use one of {', '.join(_TESTS)}"
    if isinstance(node, nodes.Getattr) and node.attr.startswith("_"):
        yield node.lineno, f"reaches for {visible(node.attr)!r}", "name a field of the data"
    if isinstance(node, nodes.For):
        if loops:
            yield node.lineno, "has a loop in a loop", "write one loop"
        if node.recursive or not isinstance(node.target, nodes.Name):
            yield node.lineno, "has a loop of an odd form", "write {% for message in messages %}"
        else:
            loops = loops | {node.target.name, "loop"}
    for child in node.iter_child_nodes():
        yield from _walk(child, names, loops)


def _used(tree: Any) -> set[str]:
    from jinja2 import nodes

    return {name.name for output in tree.find_all(nodes.Output) for name in output.find_all(nodes.Name)}


def _called(node: Any) -> str:
    return {"Call": "a call", "Mul": "*", "Add": "+", "Mod": "%", "Pow": "**", "Concat": "~"}.get(
        type(node).__name__, f"the {type(node).__name__.lower()} of the template language"
    )
