"""This server and other memories: the same pages, the same questions, the same machine, one run.

Run ``python -m benchmarks.compare --data FILE --data FILE``. Each peer gets an environment of its own, in which pip
installs it (`benchmarks.peers`). For each conversation, the peers add its pages one after the other, then each question
is put to all of them in turn, so that other load on the machine affects all. The order changes from one to the next.
Results are kept in a folder, and a second run continues there.
"""

import json
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
import click
import platformdirs
import psutil
from rich.console import Console

from benchmarks.asking import MAX_RESULTS
from benchmarks.client import ServerError
from benchmarks.compare_report import Comparison, as_json, markdown, print_comparison
from benchmarks.datasets import SET_APART, Conversation, Dataset, DatasetError, load
from benchmarks.metrics import places
from benchmarks.peers import results
from benchmarks.peers.catalogue import NAMES, known
from benchmarks.peers.driving import Driver
from benchmarks.peers.installing import Installed, InstallError, install, size_of
from benchmarks.peers.results import Asked, Result
from benchmarks.pipe import Pipe, opened
from benchmarks.plots import draw
from memoryos_mcp.model.pages import estimate_tokens

# The second number also holds for further files.
CONVERSATIONS = (1, 4)
STARTS = 2
START_TIMEOUT_S, CALL_TIMEOUT_S, SETTLE_TIMEOUT_S = 300.0, 120.0, 600.0
LEAST_WIDTH = 150
FAILURES = (ServerError, OSError, TimeoutError, KeyError, ValueError)

Say = Callable[[str], None]


@dataclass(slots=True)
class Running:
    """A peer that has the pages of a conversation.

    Attributes:
        data: Its data folder.
        home: Its home folder.
        process: The pipe of its process.
        stack: Closes the process.
    """

    installed: Installed
    data: Path
    home: Path
    process: Pipe
    driver: Driver
    stack: AsyncExitStack
    add_s: list[float] = field(default_factory=list)
    settled_s: float = 0.0
    asked: list[Asked] = field(default_factory=list)

    @property
    def title(self) -> str:
        """Its name in the tables."""
        return self.installed.peer.title


@asynccontextmanager
async def started(installed: Installed, data: Path, home: Path) -> AsyncIterator[Pipe]:
    """Start a process of a peer on a data folder."""
    peer, python = installed.peer, installed.python
    command, *arguments = peer.command_line(python, data)
    # Closed after the process.
    with (home.parent / "stderr.txt").open("ab") as stderr:
        async with opened(
            *arguments,
            python=command,
            env=peer.environment(python, data, home),
            cwd=installed.home(home),
            stderr=stderr,
            start_timeout_s=START_TIMEOUT_S,
        ) as pipe:
            yield pipe


@dataclass(frozen=True, slots=True)
class Bench:
    """The run of one conversation through peers.

    Attributes:
        folder: The folder for the data of all peers.
        kept: The folder for results.
        say: Shows a line of progress.
        failures: By title of a peer, why it was given up.
    """

    conversation: Conversation
    folder: Path
    kept: Path
    say: Say
    failures: dict[str, str]

    async def run(self, peers: Sequence[Installed]) -> None:
        """Measure the peers, and write a result for each."""
        async with AsyncExitStack() as stack:
            running = [each for peer in peers if (each := await self._fed(peer, stack)) is not None]
            await self._ask(running)
            memory = [_resident(each.process.pid) for each in running]
            for each in running:
                await each.stack.aclose()
        for each, resident in zip(running, memory, strict=True):
            if each.title not in self.failures:
                await self._finish(each, resident)

    async def _fed(self, installed: Installed, stack: AsyncExitStack) -> Running | None:
        folder = self.folder / installed.peer.name
        await anyio.Path(folder / "data").mkdir(parents=True)
        own = await stack.enter_async_context(AsyncExitStack())
        try:
            pipe = await own.enter_async_context(started(installed, folder / "data", folder / "home"))
            each = Running(installed, folder / "data", folder / "home", pipe, installed.peer.client(pipe), own)
            began = time.perf_counter()
            for page in self.conversation.pages:
                async with _limit(CALL_TIMEOUT_S):
                    each.add_s.append(await each.driver.add(page))
            async with _limit(SETTLE_TIMEOUT_S):
                await each.driver.settle()
            each.settled_s = time.perf_counter() - began
        except FAILURES as error:
            await self._give_up(installed.peer.title, own, error)
            return None
        self.say(f"{self.conversation.id}: {each.title}: {len(each.add_s)} pages in {each.settled_s:.0f} s")
        return each

    async def _ask(self, running: list[Running]) -> None:
        """Put each question to all peers in turn; a peer that fails is left out from then on."""
        began, total = time.perf_counter(), len(self.conversation.questions)
        for number in range(total):
            at = number % max(len(running), 1)
            for each in [*running[at:], *running[:at]]:
                try:
                    async with _limit(CALL_TIMEOUT_S):
                        each.asked.append(await self._answer(each.driver, number))
                except FAILURES as error:
                    await self._give_up(each.title, each.stack, error)
                    running.remove(each)
            if (number + 1) % 50 == 0 or number + 1 == total:
                took_s = time.perf_counter() - began
                self.say(f"{self.conversation.id}: {number + 1} of {total} questions in {took_s:.0f} s")

    async def _answer(self, driver: Driver, number: int) -> Asked:
        question = self.conversation.questions[number]
        answer = await driver.ask(question.text)
        ranking = await driver.rank(question.text, MAX_RESULTS)
        gold = [page for page in self.conversation.pages if page.page_id in question.gold]
        return Asked(
            places=places(question.gold, ranking.pages, ranking.beside),
            whole=results.whole_share(gold, answer.text),
            tokens=estimate_tokens(answer.text),
            took_s=answer.took_s,
        )

    async def _finish(self, each: Running, resident: int) -> None:
        try:
            start_s = [await self._start_s(each) for _ in range(STARTS)]
        except FAILURES as error:
            await self._give_up(each.title, each.stack, error)
            return
        installed = each.installed
        result = Result(
            conversation=self.conversation.id,
            of=results.digest(self.conversation),
            versions=installed.versions,
            install_bytes=installed.size_bytes,
            asked=each.asked,
            add_s=each.add_s,
            settled_s=each.settled_s,
            start_s=start_s,
            memory_bytes=resident,
            disk_bytes=size_of(each.data),
            pages=len(self.conversation.pages),
        )
        results.write(self.kept / f"{installed.peer.name}.json", result)

    async def _start_s(self, each: Running) -> float:
        began = time.perf_counter()
        async with started(each.installed, each.data, each.home) as pipe:
            async with _limit(CALL_TIMEOUT_S):
                await each.installed.peer.client(pipe).ask(self.conversation.questions[0].text)
            return time.perf_counter() - began

    async def _give_up(self, title: str, stack: AsyncExitStack, error: Exception) -> None:
        self.failures[title] = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        self.say(f"{self.conversation.id}: {title} is given up: {self.failures[title]}")
        await stack.aclose()


@asynccontextmanager
async def _limit(seconds: float) -> AsyncIterator[None]:
    with anyio.fail_after(seconds):
        yield


def _resident(pid: int) -> int:
    """Return the resident bytes of a process and its children."""
    process = psutil.Process(pid)
    return sum(each.memory_info().rss for each in (process, *process.children(recursive=True)))


def chosen(dataset: Dataset, conversations: int, questions: int | None) -> Dataset:
    """Return a part of the data set: its first conversations, each with its first questions."""
    return replace(
        dataset,
        conversations=tuple(
            replace(
                each,
                questions=tuple(one for one in each.questions if one.category not in SET_APART)[:questions],
            )
            for each in dataset.conversations[:conversations]
        ),
    )


async def compare(
    datasets: Sequence[Dataset], peers: Sequence[Installed], work: Path, say: Say, failures: dict[str, str]
) -> list[Comparison]:
    """Measure what is not measured yet, and return all results.

    Args:
        datasets: Conversations with their questions.
        peers: The installed peers, in the order of the tables.
        work: The folder with all results.
        say: Shows a line of progress.
        failures: Receives the reason for each peer that failed, by its title.
    """
    number = 0
    for dataset in datasets:
        for conversation in dataset.conversations:
            kept = work / "results" / dataset.name / conversation.id
            at, number = number % len(peers), number + 1
            left = [
                peer
                for peer in (*peers[at:], *peers[:at])
                if results.read(kept / f"{peer.peer.name}.json", conversation) is None
            ]
            if not left:
                say(f"{conversation.id}: measured before")
                continue
            # A process that had to be killed may still write.
            with tempfile.TemporaryDirectory(prefix="memoryos-benchmark-", ignore_cleanup_errors=True) as folder:
                await Bench(conversation, Path(folder), kept, say, failures).run(left)
    return [_read(dataset, peers, work) for dataset in datasets]


def _read(dataset: Dataset, peers: Sequence[Installed], work: Path) -> Comparison:
    """Return the results of the peers that have one for each conversation."""
    found: dict[str, list[Result]] = {}
    for peer in peers:
        kept = [
            results.read(work / "results" / dataset.name / each.id / f"{peer.peer.name}.json", each)
            for each in dataset.conversations
        ]
        whole = [result for result in kept if result is not None]
        if len(whole) == len(kept):
            found[peer.peer.title] = whole
    return Comparison(dataset, found)


def _installed(names: Sequence[str], work: Path, say: Say, failures: dict[str, str]) -> list[Installed]:
    peers = []
    for peer in map(known, names):
        say(f"installing {peer.title}")
        try:
            peers.append(install(peer, work))
        except InstallError as error:
            failures[peer.title] = f"not installed: {error}"
            say(f"{peer.title}: {failures[peer.title]}")
    if not peers:
        message = "no peer could be installed"
        raise click.ClickException(message)
    return peers


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--data",
    "files",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    required=True,
    help="LoCoMo's JSON or a file in the neutral format; may be given more than once.",
)
@click.option(
    "--conversations",
    type=click.IntRange(min=1),
    multiple=True,
    default=CONVERSATIONS,
    show_default=True,
    help="Number of conversations of each file, in the order of the files; the last number holds for further files.",
)
@click.option("--questions", type=click.IntRange(min=1), help="Maximum number of questions about each conversation.")
@click.option("--peers", metavar="NAMES", default=",".join(NAMES), show_default=True, help="The peers to measure.")
@click.option(
    "--work",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(platformdirs.user_cache_dir("memoryos-benchmark")) / "compare",
    help="The folder for environments and results; by default a cache folder.",
)
@click.option("--again", is_flag=True, help="Measure these peers again.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write all figures here.")
@click.option("--markdown", "markdown_file", type=click.Path(dir_okay=False, path_type=Path), help="Write tables here.")
@click.option("--pictures", type=click.Path(file_okay=False, path_type=Path), help="Draw the plots in this folder.")
def main(
    files: Sequence[Path],
    conversations: Sequence[int],
    questions: int | None,
    peers: str,
    work: Path,
    again: bool,
    json_file: Path | None,
    markdown_file: Path | None,
    pictures: Path | None,
) -> None:
    """Compare this server with other memories on the same pages and questions."""
    names = [name.strip() for name in peers.split(",")]
    if unknown := set(names).difference(NAMES):
        message = f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(NAMES)}"
        raise click.BadParameter(message, param_hint="--peers")
    began, output, progress = time.monotonic(), Console(), Console(stderr=True)
    failures: dict[str, str] = {}

    def say(line: str) -> None:
        progress.print(f"[dim]{time.monotonic() - began:5.0f} s[/dim]  {line}", highlight=False, soft_wrap=True)

    datasets = [
        chosen(_loaded(file), conversations[min(number, len(conversations) - 1)], questions)
        for number, file in enumerate(files)
    ]
    work = work.resolve()
    installed = _installed(names, work, say, failures)
    if again:
        for file in (work / "results").rglob("*.json"):
            if file.stem in names:
                file.unlink()
    compared = anyio.run(compare, datasets, installed, work, say, failures)
    print_comparison(output if output.width >= LEAST_WIDTH else Console(width=LEAST_WIDTH), compared, failures)
    if json_file:
        json_file.write_text(json.dumps(as_json(compared, failures), indent=1) + "\n", encoding="utf-8")
    if markdown_file:
        markdown_file.write_text(markdown(compared, failures), encoding="utf-8")
    if pictures:
        draw(compared, pictures)


def _loaded(file: Path) -> Dataset:
    try:
        return load(file)
    except DatasetError as error:
        raise click.ClickException(str(error)) from error


if __name__ == "__main__":
    main()
