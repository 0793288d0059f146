"""The share of secrets that are caught, the rate of false alarms, and the cost of redaction.

Run ``python -m benchmarks.secrets --data FILE``. Secrets are made up, in the forms of providers and of everyday life.
False alarms are counted in the conversations of each FILE (LoCoMo's published JSON or the neutral format), in random
lines of this machine's Python library, documentation and logs, and in lookalikes of secrets. Each alarm is printed in
part. Orders to the reader are counted in the same conversations.
"""

import random
import re
import sysconfig
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

import click
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.datasets import Conversation, load
from benchmarks.everyday_secrets import planted, recovery_codes
from benchmarks.secret_keys import near_misses, secrets_of
from memoryos_mcp.text.injection import gives_orders
from memoryos_mcp.text.secrets import Redacted, redact

ROUNDS = 500
NEAR_MISS_ROUNDS = 2_000
TIMINGS = 5
ALARMS_AT_MOST = 1.0  # in 10,000 turns
LINE_ALARMS_AT_MOST = 5  # in 50,000 lines
SHOWN_CHARS = 60

# Some forms take several lines, so neighbouring lines are drawn together.
LINES_TOGETHER = 50
# Code, prose and logs.
_ENDINGS = frozenset({".py", ".pyi", ".txt", ".rst", ".md", ".html", ".log", ".cfg", ".toml", ".json", ".c", ".h", ""})
_SYSTEM_FOLDERS = ("/usr/share/doc", "/usr/share/perl", "/usr/share/common-licenses", "/var/log")

_SENTENCES = (
    "Here it is: {}",
    "I set the variable to {} and it still fails.",
    '{{"value": "{}", "active": true}}',
    "```\nexport VALUE={}\n```",
    "密钥是{}，谢谢",
    "({}), please keep it to yourself!",
)


def catch_rates(rounds: int) -> dict[str, float]:
    """Return the share of caught secrets of each form."""
    chance = random.Random(7)  # noqa: S311 - made-up data
    caught: Counter[str] = Counter()
    made: Counter[str] = Counter()
    for number in track(range(rounds), "secrets", console=Console(stderr=True)):
        sentence = _SENTENCES[number % len(_SENTENCES)]
        for kind, secret in secrets_of(chance):
            made[kind] += 1
            caught[kind] += _is_caught(sentence.format(secret), secret)
        for text in (*planted(chance), recovery_codes(chance)):
            made[text.kind] += 1
            caught[text.kind] += redact(text.text).text == text.clean
    return {kind: caught[kind] / made[kind] for kind in made}


def lines_of_this_machine(count: int, seed: int) -> list[str]:
    """Return texts of neighbouring lines from random files.

    Args:
        count: Number of lines.
        seed: The random seed.
    """
    chance = random.Random(seed)  # noqa: S311 - no secret
    found = [
        file
        for folder in (sysconfig.get_path("stdlib"), *_SYSTEM_FOLDERS)
        for file in sorted(Path(folder).rglob("*"))
        if file.suffix in _ENDINGS and "site-packages" not in file.parts and file.is_file()
    ]
    texts: list[str] = []
    while count > 0:
        try:
            lines = chance.choice(found).read_text("utf-8").splitlines()
        except (UnicodeDecodeError, OSError):
            continue
        start = chance.randrange(max(1, len(lines) - LINES_TOGETHER))
        taken = lines[start : start + min(LINES_TOGETHER, count)]
        count -= len(taken)
        texts += ["\n".join(taken)] if taken else []
    return texts


def _is_caught(text: str, secret: str) -> bool:
    """Return whether the redacted text does not contain the last word of the secret, or the password of an address."""
    clean = redact(text)
    address = re.search(r":(\w+)@", secret)
    core = address[1] if address else secret.split()[-1]
    return bool(clean.kinds) and core not in clean.text


def near_miss_alarms(rounds: int) -> dict[str, float]:
    """Return the share of false alarms for each lookalike."""
    chance = random.Random(11)  # noqa: S311 - made-up data
    alarms: Counter[str] = Counter()
    for number in range(rounds):
        sentence = _SENTENCES[number % len(_SENTENCES)]
        for what, text in near_misses(chance):
            alarms[what] += bool(redact(sentence.format(text)).kinds)
    return {what: alarms[what] / rounds for what, _ in near_misses(chance)}


def turns_of(conversations: Sequence[Conversation]) -> list[str]:
    """Return all sides of pages that are not empty."""
    sides = [side for one in conversations for page in one.pages for side in (page.user_input, page.agent_response)]
    return [side for side in sides if side]


def seconds(work: Callable[[str], object], texts: Sequence[str]) -> float:
    """Return the best time of several runs over all texts."""
    best = float("inf")
    for _ in range(TIMINGS):
        began = time.perf_counter()
        for text in texts:
            work(text)
        best = min(best, time.perf_counter() - began)
    return best


def _print_rates(console: Console, rates: dict[str, float]) -> None:
    table = Table(title=f"Caught, of {ROUNDS} of each form in six surroundings")
    for _ in range(3):
        table.add_column("secret")
        table.add_column("caught", justify="right")
    cells = iter(f"{kind}\0{rate:.1%}" for kind, rate in sorted(rates.items()))
    while row := list(islice(cells, 3)):
        table.add_row(*(part for cell in row for part in cell.split("\0")))
    console.print(table)
    console.print(f"{len(rates)} forms, caught on average {sum(rates.values()) / len(rates):.2%}")


def _print_alarms(console: Console, name: str, turns: Sequence[str]) -> None:
    alarms = [(turn, found) for turn in turns if (found := redact(turn)).kinds]
    rate = 10_000 * len(alarms) / len(turns)
    verdict = "reached" if rate < ALARMS_AT_MOST else "[bold red]not reached[/bold red]"
    console.print(f"{name}: {len(alarms)} alarms in {len(turns):,} turns, {rate:.2f} in 10,000 ({verdict})")
    _print_found(console, alarms)
    said, fetched = (sum(gives_orders(turn, is_said=is_said) for turn in turns) for is_said in (True, False))
    console.print(f"  taken for orders: {said} as conversation, {fetched} if they had been fetched")
    floor, ours = seconds(_scan, turns), seconds(redact, turns)
    per_turn = ours / len(turns) * 1e6
    chars = sum(map(len, turns))
    console.print(
        f"  cost: {per_turn:.0f} us a turn of {chars // len(turns):,} characters, {ours / chars * 1e9:.0f} ns a "
        f"character; one scan of the same text by a regular expression {floor / chars * 1e9:.0f} ns, "
        f"{ours / floor:.1f} x"
    )


def _print_found(console: Console, alarms: Sequence[tuple[str, Redacted]]) -> None:
    for text, found in alarms:
        at = found.text.index("[redacted")
        console.print(f"  {found.kinds[0]}: {text[max(0, at - SHOWN_CHARS) : at + SHOWN_CHARS]!r}", markup=False)


def _print_lines(console: Console, count: int, seed: int) -> None:
    texts = lines_of_this_machine(count, seed)
    alarms = [(text, found) for text in texts if (found := redact(text)).kinds]
    of_all = sum(len(found.kinds) for _, found in alarms)
    verdict = "reached" if of_all <= LINE_ALARMS_AT_MOST * count / 50_000 else "[bold red]not reached[/bold red]"
    console.print(f"files of this machine: {of_all} alarms in {count:,} lines, seed {seed} ({verdict})")
    _print_found(console, alarms)


_BARE = re.compile(r"[A-Za-z0-9_-]{20,}+")


def _scan(text: str) -> object:
    return _BARE.search(text)


@click.command()
@click.option(
    "--data",
    "files",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="Conversations; may be given more than once.",
)
@click.option(
    "--lines",
    type=click.IntRange(min=0),
    default=50_000,
    show_default=True,
    help="Number of lines from this machine's files.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Random seed for these lines.")
def main(files: Sequence[Path], lines: int, seed: int) -> None:
    """Measure caught secrets, false alarms, and the cost of redaction."""
    console = Console(width=150)
    _print_rates(console, catch_rates(ROUNDS))
    table = Table(title=f"Taken for secrets, of {NEAR_MISS_ROUNDS:,} of each")
    table.add_column("no secret")
    table.add_column("alarms", justify="right")
    for what, rate in near_miss_alarms(NEAR_MISS_ROUNDS).items():
        table.add_row(what, f"{rate:.2%}")
    console.print(table)
    for file in files:
        _print_alarms(console, file.stem, turns_of(load(file).conversations))
    if lines:
        _print_lines(console, lines, seed)


if __name__ == "__main__":
    main()
