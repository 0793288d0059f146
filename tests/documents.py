"""Reads the README and the pages of docs, for tests that compare them with the program."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
DOCS = ROOT / "docs"


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block.

    Attributes:
        document: The file's path, relative to the root.
        line: The number of the first line, from 1.
        kind: The language in the fence, like ``sh``.
        text: The content.
        output: The next ``text`` block before any heading, which shows what a program prints, or None.
    """

    document: str
    line: int
    kind: str
    text: str
    output: str | None = None

    def __str__(self) -> str:
        return f"{self.document}:{self.line}"


@dataclass(frozen=True, slots=True)
class Link:
    """A link or a picture."""

    document: str
    target: str
    text: str
    is_picture: bool


def documents() -> list[Path]:
    """Return the README and the pages, in the order in which a reader begins."""
    return [README, *sorted(DOCS.glob("**/*.md"))]


@cache
def text_of(document: Path) -> str:
    return document.read_text(encoding="utf-8")


def everything() -> str:
    return "\n".join(text_of(document) for document in documents())


def section(title: str) -> str:
    """Return the text under a heading, down to the next heading of the same level or a higher one.

    The heading must be in the README or on a page, and only once. To look for a sentence, join its lines by `joined`.
    """
    found = [part for document in documents() for part in _sections(text_of(document), title)]
    assert len(found) == 1, f"{len(found)} headings {title!r}"
    return found[0]


def joined(text: str) -> str:
    """Return a text without its line breaks."""
    return " ".join(text.split())


def table(title: str) -> list[list[str]]:
    """Return the cells of those table rows under a heading whose first cell is code."""
    rows = [line.strip("| ").split(" | ") for line in section(title).splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in row] for row in rows]


def json_blocks(title: str) -> list[str]:
    """Return the JSON blocks under a heading."""
    return re.findall(r"```json\n(.*?)```", section(title), re.DOTALL)


def blocks(document: Path) -> list[Block]:
    """Return the fenced blocks of a document in order, including those in lists."""
    found: list[Block] = []
    tokens = _tokens(document)
    for place, token in enumerate(tokens):
        if token.type == "fence":
            assert token.map is not None
            name = document.relative_to(ROOT).as_posix()
            output = _output_after(tokens[place + 1 :])
            found.append(Block(name, token.map[0] + 1, token.info.strip(), token.content, output))
    return found


def links(document: Path) -> Iterator[Link]:
    """Yield the links and pictures of a document."""
    name = document.relative_to(ROOT).as_posix()
    for token in _tokens(document):
        children = token.children or []
        for place, child in enumerate(children):
            if child.type == "link_open":
                yield Link(name, str(child.attrGet("href")), children[place + 1].content, is_picture=False)
            elif child.type == "image":
                yield Link(name, str(child.attrGet("src")), child.content, is_picture=True)


def spans(document: Path) -> list[str]:
    """Return the texts in code format in the sentences and tables of a document."""
    tokens = [child for token in _tokens(document) for child in token.children or []]
    return [joined(token.content) for token in tokens if token.type == "code_inline"]


@cache
def _tokens(document: Path) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(text_of(document))


def _output_after(tokens: list[Token]) -> str | None:
    for token in tokens:
        if token.type == "fence":
            is_output = token.info.strip() == "text" and not token.content.startswith("$ ")
            return token.content if is_output else None
        if token.type == "heading_open":
            return None
    return None


def _sections(text: str, title: str) -> Iterator[str]:
    for heading in re.finditer(rf"^(#+) {re.escape(title)}$", text, re.MULTILINE):
        rest = text[heading.end() :]
        end = re.search(rf"^#{{1,{len(heading[1])}}} ", _without_blocks(rest), re.MULTILINE)
        yield rest[: end.start()] if end else rest


def _without_blocks(text: str) -> str:
    """Return the text with its fenced blocks blanked out, because comments in scripts look like headings."""
    return re.sub(r"^ *```.*?^ *```$", lambda block: " " * len(block[0]), text, flags=re.MULTILINE | re.DOTALL)
