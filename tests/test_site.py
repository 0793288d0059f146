"""The site builds without a warning, and no internal link is dead; links to the web are not requested."""

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.documents import DOCS, ROOT, documents, links
from tests.servers import clean_environment

BUILD_LIMIT_S = 120
# The theme creates this page and the links to it.
OF_THE_GENERATOR = {"genindex", "search"}


@dataclass
class Page(HTMLParser):
    """The links and the anchors of a built page."""

    file: Path
    targets: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    pictures: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if "id" in given:
            self.anchors.add(given["id"])
        if tag == "img":
            self.pictures.append((given["src"], given.get("alt", "")))
        target = given.get("href") if tag in {"a", "link"} else given.get("src")
        if target is not None:
            self.targets.append(target)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the site, built with warnings as errors."""
    folder = tmp_path_factory.mktemp("site")
    options = ["-n", "-W", "--keep-going", "-q", "-d", str(folder / "doctrees")]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, str(DOCS), str(folder / "html")],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=BUILD_LIMIT_S,
        env=clean_environment(),
    )
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "html"


@cache
def page(file: Path) -> Page:
    return Page(file)


def pages(site: Path) -> list[Page]:
    return [page(file) for file in sorted(site.glob("*.html"))]


def dead(found: Page) -> Iterator[str]:
    """Yield the internal links whose target does not exist."""
    for target in found.targets:
        parts = urlsplit(target)
        if parts.scheme or parts.netloc or target == "#":
            continue
        file = (found.file.parent / unquote(parts.path)) if parts.path else found.file
        if file.is_dir():
            file /= "index.html"
        if not file.is_file() or (parts.fragment and unquote(parts.fragment) not in page(file).anchors):
            yield target


def test_every_page_is_built_and_linked(site: Path) -> None:
    built = {found.file.stem for found in pages(site)} - OF_THE_GENERATOR
    assert built == {path.stem for path in DOCS.glob("*.md")}
    reached, to_visit = set(), [site / "index.html"]
    while to_visit:
        file = to_visit.pop()
        if file.stem not in reached:
            reached.add(file.stem)
            to_visit += [site / unquote(urlsplit(t).path) for t in page(file).targets if re.match(r"[\w-]+\.html", t)]
    assert built <= reached


def test_no_internal_link_is_dead(site: Path) -> None:
    assert {found.file.name: gone for found in pages(site) if (gone := list(dead(found)))} == {}


def test_every_picture_exists_with_a_text_alternative(site: Path) -> None:
    pictures = [(found, source, alt) for found in pages(site) for source, alt in found.pictures]
    shown = {source.rpartition("/")[2] for _, source, _ in pictures}
    drawn = {path.name for path in DOCS.rglob("*.svg")}
    assert drawn < shown <= drawn | {path.name for path in (DOCS / "pictures").glob("*.png")}
    assert all((found.file.parent / source).is_file() and len(alt) > 40 for found, source, alt in pictures)


def test_every_link_in_a_checkout_leads_to_a_file() -> None:
    for document in documents():
        for link in links(document):
            path = link.target.partition("#")[0]
            if not urlsplit(link.target).scheme and path:
                assert (document.parent / path).is_file(), f"{link.document}: {link.target}"


def test_links_to_the_web_are_well_formed() -> None:
    found = [link for document in documents() for link in links(document) if urlsplit(link.target).scheme]
    assert found
    for link in found:
        parts = urlsplit(link.target)
        assert parts.scheme == "https", link
        assert re.fullmatch(r"(?:[a-z0-9-]+\.)+[a-z]{2,}", parts.hostname or ""), link
        assert link.text.strip(), link


def test_the_site_loads_nothing_from_other_hosts(site: Path) -> None:
    for found in pages(site):
        text = found.file.read_text(encoding="utf-8")
        assert not re.search(r"<(?:script|img|iframe|link rel=\"stylesheet\")[^>]+(?:src|href)=\"(?:https?:)?//", text)


def test_the_source_archive_contains_the_site() -> None:
    assert re.search(r'^include = \[.*"docs"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
