"""The state of a run over questions: a file of answers, a line of JSON each, with which an ended run goes on."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a question.

    Attributes:
        id: The question's.
        text: The answer; empty if there was none.
        failure: Why there was none; None if there was one.
        prompt_tokens: Of the call, as the LLM's server counted them.
        completion_tokens: Likewise.
        recalled_tokens: About how many tokens of memory were shown.
        took_s: From the question to the answer.
        is_right: What the judge says; None if it was not asked.
    """

    id: str
    text: str
    failure: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    recalled_tokens: int = 0
    took_s: float = 0.0
    is_right: bool | None = None


class State:
    """Answers so far; of several to a question the last one counts.

    Args:
        file: Where they are kept; None keeps them in memory only.
        about: What the run is about; a file of another run is refused.

    Raises:
        click.ClickException: The file is of another run.
    """

    def __init__(self, file: Path | None, about: dict[str, Any]) -> None:
        self._file = file
        self.answers: dict[str, Answer] = {}
        if file is None:
            return
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        known = [entry for line in lines if (entry := _read(line)) is not None]
        if not known:
            file.write_text(json.dumps({"about": about}) + "\n", encoding="utf-8")
            return
        if known[0].get("about") != about:
            message = f"{file} holds answers of another run ({known[0].get('about')}); name another file"
            raise click.ClickException(message)
        for entry in known[1:]:
            self._take(Answer(**entry))
        if not file.read_bytes().endswith(b"\n"):  # it was ended in the middle of a line
            self._append("")

    def add(self, answer: Answer) -> None:
        """Keep an answer; it is in the file when this returns."""
        self._take(answer)
        self._append(json.dumps(asdict(answer), ensure_ascii=False))

    def _take(self, answer: Answer) -> None:
        self.answers[answer.id] = answer

    def _append(self, line: str) -> None:
        if self._file is not None:
            with self._file.open("a", encoding="utf-8") as file:
                file.write(f"{line}\n")


def _read(line: str) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None
