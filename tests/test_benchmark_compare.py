"""The comparison with other memories, on peers of a few lines that are started as real ones are."""

import json
import re
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.compare import chosen, compare
from benchmarks.compare_report import Comparison, as_json, markdown
from benchmarks.datasets import Conversation, Dataset, Page, Question
from benchmarks.metrics import paired_bootstrap
from benchmarks.peers.catalogue import NAMES, OURS, ROOT, Peer, known
from benchmarks.peers.driving import LibraryClient
from benchmarks.peers.installing import Installed
from benchmarks.peers.results import whole_share
from benchmarks.plots import draw

ADAPTER_MAX_LINES = 59
PEERS = Path(__file__).parent.parent / "benchmarks" / "peers"
FAKE = """
import json, os, sys
from benchmarks.peers.library import Found, Library, serve

class Fake(Library):
    def __init__(self, folder):
        with open(os.environ["STARTS"], "a") as starts:
            starts.write(os.environ["WAY"] + "\\n")
        self.file, self.way = folder / "pages.jsonl", os.environ["WAY"]

    def pages(self):
        return [json.loads(line) for line in self.file.read_text().splitlines()]

    def add(self, page):
        print("a library prints")
        with open(self.file, "a") as file:
            file.write(json.dumps([page.page_id, page.text]) + "\\n")

    def find(self, question, limit):
        if self.way == "fails":
            raise RuntimeError("no memory")
        pages = self.pages()
        pages.sort(key=lambda page: question.split()[-1] not in page[1])
        found = pages[:limit or 1] if self.way == "right" else pages[-1:]
        return Found([page_id for page_id, _ in found], [text for _, text in found])

serve(Fake)
"""


def conversation(name: str) -> Conversation:
    began = datetime(2026, 5, 8, tzinfo=UTC)
    words = ("kayak", "piano", "garden", "bread")
    pages = [
        Page(f"{name}:{number}", f"I like my {word}.", f'Your "{word}"\nis nice.', began + timedelta(hours=number))
        for number, word in enumerate(words)
    ]
    questions = [Question(f"Where is my {word}", "single-hop", (f"{name}:{at}",)) for at, word in enumerate(words[:3])]
    return Conversation(name, tuple(pages), (*questions, Question("Who?", "adversarial", (pages[0].page_id,))), 0, 0)


def dataset(*names: str) -> Dataset:
    return chosen(Dataset("fake", "made up", ("single-hop",), tuple(map(conversation, names))), len(names), None)


def fake(folder: Path, way: str, title: str) -> Installed:
    script = folder / "fake.py"
    script.write_text(FAKE, encoding="utf-8")
    env = {"PYTHONPATH": str(ROOT), "STARTS": str(folder / "starts"), "WAY": way}
    peer = Peer(
        way, title, (3, 11), (), (), (), None, "", False, ("{python}", str(script), "{data}"), env, LibraryClient
    )
    return Installed(peer, Path(sys.executable), folder, {"fake": "1.0"}, size_bytes=7_000_000)


def starts(folder: Path, way: str) -> int:
    return (folder / "starts").read_text(encoding="utf-8").split().count(way)


async def measured(folder: Path, data: Dataset, *peers: Installed) -> tuple[Comparison, dict[str, str], list[str]]:
    said: list[str] = []
    failures: dict[str, str] = {}
    (comparison,) = await compare([data], peers, folder / "work", said.append, failures)
    return comparison, failures, said


@pytest.mark.parametrize("name", NAMES)
def test_an_adapter_is_short_and_says_how_to_install(name: str) -> None:
    text = (PEERS / f"{name}.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= ADAPTER_MAX_LINES
    peer = known(name)
    assert peer.title
    assert peer.packages
    assert all(re.search(r"<\d|==\d|^\.$", needed) for needed in (*peer.dependencies, *peer.alone))


async def test_each_peer_is_scored_on_all_questions(tmp_path: Path) -> None:
    peers = [fake(tmp_path, "right", known(OURS).title), fake(tmp_path, "wrong", "Wrong")]
    comparison, failures, _ = await measured(tmp_path, dataset("a", "b"), *peers)
    assert failures == {}
    assert comparison.found(known(OURS).title, 5) == 1
    assert comparison.found("Wrong", 20) == 0
    assert comparison.whole(known(OURS).title) == 1
    lead = comparison.lead("Wrong")
    assert lead is not None
    assert (lead.mean, lead.low, lead.high) == (1, 1, 1)
    assert comparison.lead(known(OURS).title) is None


async def test_a_second_run_measures_only_what_is_missing(tmp_path: Path) -> None:
    right, wrong = fake(tmp_path, "right", "Right"), fake(tmp_path, "wrong", "Wrong")
    await measured(tmp_path, dataset("a"), right)
    before = starts(tmp_path, "right")
    comparison, _, _ = await measured(tmp_path, dataset("a"), right, wrong)
    assert starts(tmp_path, "right") == before
    assert list(comparison.results) == ["Right", "Wrong"]
    _, _, said = await measured(tmp_path, dataset("a"), right, wrong)
    assert said == ["a: measured before"]


async def test_other_questions_are_measured_again(tmp_path: Path) -> None:
    right = fake(tmp_path, "right", "Right")
    await measured(tmp_path, dataset("a"), right)
    before, fewer = starts(tmp_path, "right"), chosen(dataset("a"), 1, 2)
    comparison, _, _ = await measured(tmp_path, fewer, right)
    assert starts(tmp_path, "right") > before
    assert len(comparison.results["Right"][0].asked) == 2


async def test_a_peer_that_fails_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    peers = [fake(tmp_path, "fails", "Fails"), fake(tmp_path, "right", "Right")]
    comparison, failures, _ = await measured(tmp_path, dataset("a"), *peers)
    assert list(comparison.results) == ["Right"]
    assert "no memory" in failures["Fails"]
    assert "- Fails is missing: ServerError: RuntimeError: no memory" in markdown([comparison], failures)


async def test_tables_json_and_plots_show_the_same_peers(tmp_path: Path) -> None:
    peers = [fake(tmp_path, "right", known(OURS).title), fake(tmp_path, "wrong", "Wrong & Co")]
    comparison, failures, _ = await measured(tmp_path, dataset("a", "b"), *peers)
    text = markdown([comparison], failures)
    assert re.search(
        r"^\| Wrong & Co \| 0.0 / 0.0 / 0.0 \| 0.0 \| \+100.0 \[\+100.0, \+100.0\] \| ", text, re.MULTILINE
    )
    assert "- Wrong & Co: fake 1.0" in text
    rows = json.loads(json.dumps(as_json([comparison], failures)))["datasets"][0]["peers"]
    assert rows["Wrong & Co"]["found@10"] == 0
    assert rows["Wrong & Co"]["install_mb"] == 7
    for picture in draw([comparison], tmp_path / "pictures"):
        root = ElementTree.fromstring(picture.read_text(encoding="utf-8"))  # noqa: S314 - it was written here
        shown = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
        assert {known(OURS).title, "Wrong & Co"} <= set(shown)


def test_a_page_is_whole_only_with_both_sides() -> None:
    pages = conversation("a").pages[:2]
    assert whole_share(pages, json.dumps([page.text for page in pages])) == 1
    assert whole_share(pages, f"{pages[0].text} {pages[1].user_input}") == 0.5


def test_conversations_are_resampled_as_a_whole() -> None:
    ours, theirs = [1.0] * 8 + [0.0] * 2, [0.0] * 10
    by_question = paired_bootstrap(ours, theirs, ["a"] * 10)
    by_conversation = paired_bootstrap(ours, theirs, ["a"] * 8 + ["b"] * 2)
    assert by_question == paired_bootstrap(ours, theirs)
    assert by_question.mean == by_conversation.mean == 0.8
    assert (by_conversation.low, by_conversation.high) == (0, 1)
    assert 0 < by_question.low < by_question.high <= 1


def test_only_some_questions_are_chosen() -> None:
    data = chosen(replace(dataset("a", "b")), 1, 2)
    assert [len(each.questions) for each in data.conversations] == [2]
