"""Trains the network on the conversations, and writes the model's file."""

import hashlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
import torch
from rich.console import Console
from rich.progress import Progress
from torch import Tensor
from torch.nn.functional import normalize, softplus

from benchmarks.training import chats, network
from benchmarks.training.chats import Chat, Question, Text
from benchmarks.training.network import TOKEN_DIMENSION, Network
from memoryos_mcp.embedding import bundled
from memoryos_mcp.embedding.batching import batches
from memoryos_mcp.retrieval.late_interaction import NEIGHBOURS

SEED = 0
EPOCHS = 2
WARMUP_SHARE, LAST_RATE_SHARE = 0.1, 0.05
RATE, PROJECTION_RATE = 3e-5, 3e-4
# Scores are divided by these before the softmax. In the sum of both scores, that of texts has a higher one.
TEXT_TEMPERATURE, WORD_TEMPERATURE, JOINT_TEXT_TEMPERATURE = 0.05, 0.05, 0.15
# As `late_interaction.SHARPNESS`, whose larger value was chosen for the trained model.
SHARPNESS = 2.5
# Weight of the loss of each score alone, in addition to the loss of both together.
ALONE_SHARE = 0.3
# Tokens of the pages of a step, with which a step takes up to 13 GB; and of a page from another conversation.
STEP_TOKENS, OTHER_PAGE_TOKENS = 5_000, 400
OTHER_PAGES = 10
# Pages of different conversations have numbers that are this far apart, so that they are not neighbours.
APART = 100
# Tokens of a pass through the network, including padding.
PASS_TOKENS = 3_000
LEAST = -2.0


@dataclass(frozen=True, slots=True)
class Vectors:
    """The vectors of texts.

    Attributes:
        texts: One row for each text, shape ``(n, 384)``.
        words: For each text, the mean direction of each word's tokens, shape ``(w, 80)``.
    """

    texts: Tensor
    words: list[Tensor]


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of each page for each question by text and by words, shape ``(questions, pages)`` each."""

    by_text: Tensor
    by_words: Tensor

    @property
    def joint(self) -> Tensor:
        """The sum in which both are trained together, with about the shares that they have in the ranking."""
        return self.by_words / WORD_TEMPERATURE + self.by_text / JOINT_TEXT_TEMPERATURE


@dataclass(frozen=True, slots=True)
class Step:
    """Questions about one conversation, and the pages to compare.

    Attributes:
        numbers: The position of each page in the conversation, ascending.
        gold: For each question, the indices in ``pages`` of the pages that answer it.
    """

    questions: list[Question]
    pages: list[tuple[Text, ...]]
    numbers: list[int]
    gold: list[list[int]]


def vectors(model: Network, texts: Sequence[Text]) -> Vectors:
    """Return the vectors of texts."""
    rows: dict[int, tuple[Tensor, Tensor]] = {}
    for part in batches([len(text.ids) + 2 for text in texts], max_rows=len(texts), max_size=PASS_TOKENS):
        longest = max(len(texts[index].ids) for index in part) + 2
        ids, mask = np.zeros((2, len(part), longest), dtype=np.int64)
        for row, index in enumerate(part):
            run = [bundled.CLS, *texts[index].ids, bundled.SEP]
            ids[row, : len(run)], mask[row, : len(run)] = run, 1
        whole, tokens = model.vectors(model.states(torch.from_numpy(ids), torch.from_numpy(mask)))
        for row, index in enumerate(part):
            rows[index] = whole[row], _merged(tokens[row, 1:], texts[index].groups)
    return Vectors(
        torch.stack([rows[index][0] for index in range(len(texts))]), [rows[index][1] for index in range(len(texts))]
    )


def scores(asked: Vectors, weights: Tensor, found: Vectors, pages: Sequence[int], numbers: Sequence[int]) -> Scores:
    """Return the scores of each page for each question, nearly as `late_interaction.maxsim` computes them for words.

    The sides of the dialogue are not told apart, and `SHARPNESS` is smaller.

    Args:
        asked: The questions.
        weights: Weight of each word of each question; one question after another.
        found: The windows of the pages.
        pages: The index of each window's page, ascending from 0.
        numbers: The number of each page. Pages with near numbers are neighbours.
    """
    count, owners = len(numbers), torch.tensor(pages)
    window_of_word = torch.repeat_interleave(torch.tensor([len(each) for each in found.words]))
    cosines = torch.cat(asked.words) @ torch.cat(found.words).T
    own = _best(cosines, window_of_word, len(pages)).clamp(0, 1) ** SHARPNESS
    of_page = _best(own, owners, count)
    lent = torch.zeros_like(of_page)
    place_of = {number: place for place, number in enumerate(numbers)}
    for apart, share in NEIGHBOURS.items():
        pairs = [(place_of[each], place_of[each + apart]) for each in numbers if each + apart in place_of]
        earlier, later = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).T
        for source, target in ((earlier, later), (later, earlier)):
            given = torch.zeros_like(of_page).index_copy(1, target, share * of_page[:, source])
            lent = torch.maximum(lent, given)
    matches = torch.maximum(own, (lent / torch.bincount(owners).sqrt())[:, owners])
    question_of_word = torch.repeat_interleave(torch.tensor([len(each) for each in asked.words]))
    totals = torch.zeros(len(asked.words)).index_add(0, question_of_word, weights)
    weighted = matches * (weights / totals[question_of_word])[:, None]
    by_window = torch.zeros(len(totals), len(pages)).index_add(0, question_of_word, weighted)
    return Scores(_best(asked.texts @ found.texts.T, owners, count), _best(by_window, owners, count))


def loss_of(scored: Tensor, gold: Sequence[Sequence[int]]) -> Tensor:
    """Return the mean cross-entropy of a gold page among itself and all pages that do not answer the question."""
    total = torch.zeros(())
    for row, pages in zip(scored, gold, strict=True):
        is_wrong = torch.ones(len(row), dtype=torch.bool)
        is_wrong[pages] = False
        wrong = torch.logsumexp(row[is_wrong], 0)
        total = total + softplus(wrong - row[pages]).mean()
    return total / len(gold)


def train(model: Network, learned: Sequence[Chat], advance: Callable[[], None]) -> None:
    """Train the network; each conversation is one step of an epoch."""
    draw = random.Random(SEED)  # noqa: S311 - the order of training
    rates = [
        {"params": [*model.bert.parameters(), *model.dense.parameters()], "lr": RATE},
        {"params": model.projection.parameters(), "lr": PROJECTION_RATE},
    ]
    optimizer = torch.optim.AdamW(rates, weight_decay=0.01)
    steps = EPOCHS * len(learned)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / (WARMUP_SHARE * steps), max(LAST_RATE_SHARE, 1 - step / steps))
    )
    others = [(chat, page) for chat in learned for page in chat.pages if _tokens(page) < OTHER_PAGE_TOKENS]
    for _ in range(EPOCHS):
        for chat in draw.sample(learned, len(learned)):
            step = _step(chat, draw)
            more = [page for other, page in draw.sample(others, 2 * OTHER_PAGES) if other is not chat]
            pages = [*step.pages, *more[:OTHER_PAGES]]
            numbers = [*step.numbers, *(-APART * place for place in range(1, len(pages) - len(step.pages) + 1))]
            found = _compared(model, step.questions, pages, numbers)
            loss = loss_of(found.joint, step.gold)
            loss = loss + ALONE_SHARE * loss_of(found.by_text / TEXT_TEMPERATURE, step.gold)
            loss = loss + ALONE_SHARE * loss_of(found.by_words / WORD_TEMPERATURE, step.gold)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            advance()


def begin(model: Network, learned: Sequence[Chat]) -> None:
    """Set the two matrices: texts and tokens are compared with their means, tokens in their most different directions.

    A random rotation makes the dimensions of tokens similar in size, because they are stored with one scale.
    """
    with torch.no_grad():
        texts, tokens, lengths = [], [], []
        for text in (window for chat in learned for page in chat.pages for window in page[:1]):
            ids = torch.tensor([[bundled.CLS, *text.ids.tolist(), bundled.SEP]])
            [states] = model.states(ids, torch.ones_like(ids))
            texts.append(states[0])
            tokens.append(normalize(states[1:-1], dim=-1))
            lengths.append(states[1:-1].norm(dim=-1))
        every = torch.cat(tokens)
        middle = every.mean(0)
        _, directions = torch.linalg.eigh((every - middle).T @ (every - middle))
        size = TOKEN_DIMENSION
        turn, _ = torch.linalg.qr(torch.randn(size, size, generator=torch.Generator().manual_seed(SEED)))
        matrix = (directions[:, -size:] @ turn).T
        model.projection.weight.copy_(matrix)
        model.projection.bias.copy_(-torch.cat(lengths).mean() * (matrix @ middle))
        model.dense.weight.copy_(torch.eye(bundled.DIMENSION))
        model.dense.bias.copy_(-torch.stack(texts).mean(0))


def found_at(model: Network, held: Sequence[Chat], most: int) -> dict[str, float]:
    """Return the share of the gold pages among the first ``most``, in percent, for each score."""
    shares: list[dict[str, float]] = []
    with torch.no_grad():
        for chat in held:
            found = _compared(model, chat.questions, chat.pages, range(len(chat.pages)))
            scored = {"text": found.by_text, "words": found.by_words, "both": found.joint}
            for row, question in enumerate(chat.questions):
                gold = set(question.gold)
                firsts = {name: each[row].argsort(descending=True)[:most].tolist() for name, each in scored.items()}
                shares.append({name: len(gold.intersection(first)) / len(gold) for name, first in firsts.items()})
    return {name: 100 * float(np.mean([each[name] for each in shares])) for name in shares[0]}


def _compared(
    model: Network, questions: Sequence[Question], pages: Sequence[tuple[Text, ...]], numbers: Sequence[int]
) -> Scores:
    asked = vectors(model, [question.text for question in questions])
    found = vectors(model, [window for page in pages for window in page])
    weights = torch.from_numpy(np.concatenate([question.weights for question in questions]))
    return scores(asked, weights, found, [place for place, page in enumerate(pages) for _ in page], numbers)


def _step(chat: Chat, draw: random.Random) -> Step:
    sizes = [_tokens(page) for page in chat.pages]
    kept: set[int] = set()
    questions = []
    for question in draw.sample(chat.questions, len(chat.questions)):
        if sum(sizes[page] for page in kept.union(question.gold)) <= STEP_TOKENS:
            kept.update(question.gold)
            questions.append(question)
    for page in draw.sample(range(len(sizes)), len(sizes)):
        if sum(sizes[each] for each in kept | {page}) <= STEP_TOKENS:
            kept.add(page)
    places = {page: place for place, page in enumerate(sorted(kept))}
    gold = [[places[page] for page in question.gold] for question in questions]
    return Step(questions, [chat.pages[page] for page in sorted(kept)], sorted(kept), gold)


def _tokens(page: tuple[Text, ...]) -> int:
    return sum(len(window.ids) for window in page)


def _merged(tokens: Tensor, groups: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Tensor:
    kept = torch.from_numpy(np.flatnonzero(groups >= 0))
    numbers = torch.from_numpy(groups[groups >= 0])
    sums = torch.zeros(int(groups.max(initial=0)) + 1, TOKEN_DIMENSION).index_add(0, numbers, tokens[kept])
    return normalize(sums, dim=-1)


def _best(cosines: Tensor, owners: Tensor, count: int) -> Tensor:
    places = owners.expand(len(cosines), -1)
    return torch.full((len(cosines), count), LEAST).scatter_reduce(1, places, cosines, "amax")


def _report(name: str, model: Network, held: Sequence[Chat]) -> None:
    if held:
        found = found_at(model, held, 10)
        click.echo(f"{name}, found @10: " + ", ".join(f"{share:.1f} % by {score}" for score, share in found.items()))


@click.command()
@click.option("--base", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=True)
@click.option("--target", type=click.Path(dir_okay=False, path_type=Path), default=bundled.MODEL_FILE)
@click.option("--held", default=0, show_default=True, help="Leave out every n-th conversation, and score these.")
def main(base: Path, target: Path, held: int) -> None:
    """Train the bundled embedding model."""
    if held and target == bundled.MODEL_FILE:
        msg = "the bundled model is trained on all conversations; with --held, name another file with --target"
        raise click.UsageError(msg)
    torch.manual_seed(SEED)
    every = list(chats.read())
    out = every[held - 1 :: held] if held else []
    learned = [chat for number, chat in enumerate(every, 1) if not held or number % held]
    model = Network()
    network.read(model, base)
    begin(model, learned)
    _report("before", model, out)
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("training", total=EPOCHS * len(learned))
        train(model.train(), learned, lambda: progress.advance(task))
    _report("after", model.eval(), out)
    network.write(model, target)
    click.echo(f"SHA-256: {hashlib.sha256(target.read_bytes()).hexdigest()}")


if __name__ == "__main__":
    main()
