"""Results: what was measured of one peer on one conversation, kept in a file so that a run can be continued."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.datasets import Conversation, Page
from benchmarks.metrics import Place

# A reply may show a page in JSON.
_ESCAPED = re.compile(r"\\[nrt\"]")
_NO_LETTERS = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Asked:
    """The results of one question.

    Attributes:
        places: The place of each gold page.
        whole: Share of the gold pages that the answer of a default call contains whole, 0 to 1.
        tokens: Size of that answer, at four bytes per token.
        took_s: Duration of that call, seconds.
    """

    places: tuple[Place, ...]
    whole: float
    tokens: int
    took_s: float


@dataclass(frozen=True, slots=True)
class Result:
    """The results of a peer on a conversation; times are seconds, sizes bytes.

    Attributes:
        conversation: The id of the conversation.
        of: Digest of the pages and questions.
        versions: Versions of the peer's packages.
        install_bytes: Size of the peer's environment and of its model.
        asked: The results of each question, in the order of the conversation.
        add_s: Duration of each call that adds a page.
        settled_s: Time from the first of these calls until all pages can be found and are on disk.
        start_s: Times from the start of a process on the stored pages to its first answer.
        memory_bytes: Resident memory of its processes after all questions.
        disk_bytes: Size of what it stored.
        pages: Number of pages.
    """

    conversation: str
    of: str
    versions: Mapping[str, str]
    install_bytes: int
    asked: Sequence[Asked]
    add_s: Sequence[float]
    settled_s: float
    start_s: Sequence[float]
    memory_bytes: int
    disk_bytes: int
    pages: int


def digest(conversation: Conversation) -> str:
    """Return a digest of all that decides what is measured."""
    asked = [[question.text, *question.gold] for question in conversation.questions]
    said = [[page.page_id, page.text] for page in conversation.pages]
    return hashlib.sha256(json.dumps([asked, said]).encode()).hexdigest()


def whole_share(gold: Sequence[Page], text: str) -> float:
    """Return the share of pages whose two sides are whole in a text, 0 to 1; only letters and digits are compared."""
    shown = _letters(text)
    return sum(all(_letters(side) in shown for side in (page.user_input, page.agent_response)) for page in gold) / len(
        gold
    )


def _letters(text: str) -> str:
    return _NO_LETTERS.sub("", _ESCAPED.sub(" ", text))


def write(file: Path, result: Result) -> None:
    """Write a result so that the file is whole or not there."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(".part")
    part.write_text(json.dumps(asdict(result)), encoding="utf-8")
    part.replace(file)


def read(file: Path, conversation: Conversation) -> Result | None:
    """Return the result in a file, if it is of these pages and questions."""
    if not file.is_file():
        return None
    kept = json.loads(file.read_text(encoding="utf-8"))
    asked = [Asked(**{**each, "places": tuple(each["places"])}) for each in kept.pop("asked")]
    result = Result(**kept, asked=asked)
    return result if result.of == digest(conversation) else None
