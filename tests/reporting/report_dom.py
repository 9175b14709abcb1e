"""A page as a tree, with nothing but the standard library's parser."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Node:
    """An element: its tag, attributes and children (elements and text)."""

    def __init__(self, tag: str, attributes: dict[str, str], parent: Node | None) -> None:
        self.tag, self.attributes, self.parent = tag, attributes, parent
        self.children: list[Node | str] = []

    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text() for child in self.children)

    def words(self) -> str:
        """The text with its white space folded, non-breaking spaces included."""
        return " ".join(" ".join(self.parts()).replace("\u2060", "").split())

    def parts(self) -> Iterator[str]:
        for child in self.children:
            if isinstance(child, str):
                yield child
            else:
                yield from child.parts()

    def all(self, tag: str = "", css: str = "") -> list[Node]:
        found = []
        for child in self.children:
            if isinstance(child, Node):
                if tag in ("", child.tag) and (not css or css in child.attributes.get("class", "").split()):
                    found.append(child)
                found += child.all(tag, css)
        return found

    def by_id(self, name: str) -> Node:
        return next(node for node in self.all() if node.attributes.get("id") == name)


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = self.here = Node("", {}, None)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {name: value or "" for name, value in attrs}, self.here)
        self.here.children.append(node)
        if tag not in VOID:
            self.here = node

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.here.children.append(Node(tag, {name: value or "" for name, value in attrs}, self.here))

    def handle_endtag(self, tag: str) -> None:
        assert self.here.tag == tag, f"</{tag}> closes <{self.here.tag}>"
        assert self.here.parent is not None
        self.here = self.here.parent

    def handle_data(self, data: str) -> None:
        self.here.children.append(data)


def parse(html: str) -> Node:
    """The tree of a page whose every element is closed as it must be."""
    builder = _Builder()
    builder.feed(html)
    builder.close()
    assert builder.here is builder.root, f"<{builder.here.tag}> is never closed"
    return builder.root


def cells(table: Node) -> list[list[str]]:
    """The rows of a table's body as folded text."""
    return [
        [c.words() for c in row.children if isinstance(c, Node) and c.tag in {"th", "td"}]
        for body in table.all("tbody")
        for row in body.all("tr")
    ]
