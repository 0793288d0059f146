"""The state of a run over questions: a file of answers, one line of JSON each, from which a run can be resumed."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a question.

    Attributes:
        id: Id of the question.
        text: The answer; empty without one.
        failure: The reason for a missing answer; None otherwise.
        prompt_tokens: Tokens of the prompt, counted by the LLM's server.
        completion_tokens: Tokens of the reply, counted by the server too.
        recalled_tokens: Approximate number of tokens of memory in the prompt.
        took_s: Time from the question to the answer.
        is_right: Verdict of the judge; None without one.
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
    """The answers so far; the last answer to a question counts.

    Args:
        file: The file of answers; None keeps them in memory only.
        about: The parameters of the run; a file of another run is rejected.

    Raises:
        click.ClickException: The file belongs to another run.
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
            message = f"{file} contains answers of another run ({known[0].get('about')}); use another file"
            raise click.ClickException(message)
        for entry in known[1:]:
            self._take(Answer(**entry))
        if not file.read_bytes().endswith(b"\n"):  # the previous run ended in the middle of a line
            self._append("")

    def add(self, answer: Answer) -> None:
        """Append an answer to the file, if there is one."""
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
