"""The report of a run over questions: tables with the paper's figures, and the cost of an answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from benchmarks.answer_scores import ADVERSARIAL, ANSWERABLE, Question, bleu_1, is_refused, token_f1
from benchmarks.answer_state import Answer
from benchmarks.datasets import LOCOMO_CATEGORIES
from benchmarks.metrics import mean

# Memory OS of AI Agent, arXiv 2506.06326, table 2: F1 and BLEU-1 by LoCoMo's categories, with GPT-4o-mini. Its columns
# have names; they are assumed to be in the order of the categories' numbers.
PAPER = {
    "MemoryOS": {1: (35.27, 25.22), 2: (41.15, 30.76), 3: (20.02, 16.52), 4: (48.62, 42.99)},
    "A-Mem": {1: (27.02, 20.09), 2: (45.85, 36.67), 3: (12.14, 12.00), 4: (44.65, 37.06)},
    "MemGPT": {1: (26.65, 17.72), 2: (25.52, 19.44), 3: (9.15, 7.44), 4: (41.04, 34.34)},
}
PAPER_COST = "the paper's MemoryOS: 3,874 recalled tokens and 4.9 calls a response"
# A narrow pipe would cut or wrap the table.
LEAST_WIDTH = 130

_RULES = """\
F1: of the sets of words, lower-cased, without punctuation. BLEU-1: clipped precision of single words times the \
brevity penalty. Both in percent, mean over questions; a question without an answer counts 0. Category 5 asks about \
things that were never said: an answer is right if it says so and does not repeat the suggested answer. Means exclude \
it. The paper's figures are for all ten conversations with GPT-4o-mini; compare only a whole run of that model."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Means over the questions of one kind, percent.

    Attributes:
        judged: Share that the judge calls right; None unless it judged all answers.
    """

    questions: int
    f1: float
    bleu: float
    judged: float | None


def figures(questions: Sequence[Question], answers: Mapping[str, Answer], key: Mapping[str, str]) -> Figures:
    """Return the means over answerable questions.

    Args:
        questions: The questions, each answered or failed.
        answers: By question id.
        key: Corrected answers, by question id.
    """
    pairs = [(answers[each.id].text, key.get(each.id, each.answer)) for each in questions]
    judged = [answers[each.id].is_right for each in questions]
    is_judged = bool(judged) and None not in judged
    return Figures(
        questions=len(questions),
        f1=100 * mean([token_f1(text, right) for text, right in pairs]),
        bleu=100 * mean([bleu_1(text, right) for text, right in pairs]),
        judged=100 * mean([float(bool(one)) for one in judged]) if is_judged else None,
    )


def refused_share(questions: Sequence[Question], answers: Mapping[str, Answer]) -> float:
    """Return the share of adversarial questions that were declined, percent."""
    return 100 * mean([float(is_refused(answers[each.id].text, each.wrong_answer)) for each in questions])


def print_report(
    console: Console, questions: Sequence[Question], answers: Mapping[str, Answer], corrected: Mapping[str, str] | None
) -> None:
    """Print the tables of all answers so far.

    Args:
        console: The output.
        questions: The questions.
        answers: Answers by question id.
        corrected: The corrected key, by question id; None without one.
    """
    asked = [question for question in questions if question.id in answers]
    console.print(_table("the original answer key", asked, answers, {}))
    if corrected is not None:
        changed = sum(question.id in corrected for question in asked)
        console.print(_table(f"the corrected answer key ({changed} answers changed)", asked, answers, corrected))
    for line in _facts(asked, answers):
        console.print(line, highlight=False, soft_wrap=True)
    console.print(f"[dim]{_RULES}[/dim]", highlight=False, soft_wrap=True)


def _table(title: str, questions: Sequence[Question], answers: Mapping[str, Answer], key: Mapping[str, str]) -> Table:
    table = Table(title=f"F1 / BLEU-1, percent, by {title}", title_justify="left")
    table.add_column("category", no_wrap=True)
    table.add_column("n", justify="right")
    for name in ("this run", "judged right", *(f"{system} (paper)" for system in PAPER)):
        table.add_column(name, justify="right", no_wrap=True)
    for number in ANSWERABLE:
        of_kind = [question for question in questions if question.category == number]
        paper = [f"{scores[number][0]:.2f} / {scores[number][1]:.2f}" for scores in PAPER.values()]
        table.add_row(f"{number} {LOCOMO_CATEGORIES[number]}", *_cells(figures(of_kind, answers, key)), *paper)
    answerable = [question for question in questions if question.category != ADVERSARIAL]
    table.add_row("1 to 4", *_cells(figures(answerable, answers, key)), *("" for _ in PAPER), style="bold")
    return table


def _cells(found: Figures) -> tuple[str, str, str]:
    if not found.questions:
        return "0", "", ""
    judged = "" if found.judged is None else f"{found.judged:.1f}"
    return str(found.questions), f"{found.f1:.2f} / {found.bleu:.2f}", judged


def _facts(questions: Sequence[Question], answers: Mapping[str, Answer]) -> list[str]:
    adversarial = [question for question in questions if question.category == ADVERSARIAL]
    given = [answers[question.id] for question in questions if answers[question.id].failure is None]
    failed = [answers[question.id] for question in questions if answers[question.id].failure is not None]
    lines = []
    if adversarial:
        share = refused_share(adversarial, answers)
        lines.append(f"5 {LOCOMO_CATEGORIES[ADVERSARIAL]}: {share:.1f} % of {len(adversarial)} seen through")
    if given:
        prompt, completion, recalled, took = (
            mean([getattr(answer, name) for answer in given])
            for name in ("prompt_tokens", "completion_tokens", "recalled_tokens", "took_s")
        )
        lines.append(
            f"an answer: 1 call of the LLM, {prompt:,.0f} prompt tokens, of these about {recalled:,.0f} recalled, and "
            f"{completion:,.0f} of the reply, {took:.1f} s ({PAPER_COST})"
        )
    if failed:
        lines.append(f"{len(failed)} questions without an answer, the last: {failed[-1].failure}")
    return lines
