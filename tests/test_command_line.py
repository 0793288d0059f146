"""The command line: help, mistakes, exit codes and completion."""

import os
import pty
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import pytest

from memoryos_mcp import Memoryos
from memoryos_mcp.cli.command_line import (
    DESTRUCTIVE,
    EXIT_CODES,
    NOT_AS_FLAGS,
    OTHER_COMMANDS,
    PROGRAM,
    SECTIONS,
    SETTINGS_SHOWN,
    Command,
    Group,
    run,
)
from memoryos_mcp.cli.commands.completing import SHELLS, VARIABLE
from memoryos_mcp.cli.main import cli
from memoryos_mcp.config import Settings
from memoryos_mcp.errors import StorageError
from tests.commands import run_here
from tests.memories import NO_MODEL
from tests.servers import clean_environment, wait_until

LIMIT_S = 60
ROOT = Path(__file__).parent.parent
# Commands whose output is not a report: a protocol, a conversation, a script.
WITHOUT_JSON = {"serve", "ui", "demo", "completion", "hook", "daemon"}
HEAVY = {"rich", "mcp", "openai", "numpy", "apsw", "faiss", "onnxruntime", "starlette", "httpx2"}


def in_process(*args: object, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "memoryos_mcp", *map(str, args)],
        capture_output=True,
        check=False,
        encoding="utf-8",
        env=clean_environment(env),
        stdin=subprocess.DEVNULL,
        timeout=LIMIT_S,
    )


def paths(group: click.Group = cli, before: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield each command with its words on the command line."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from paths(command, (*before, name))
        else:
            yield (*before, name), command


# Help -----------------------------------------------------------------------------------------------------------------


def test_help_lists_every_command_once_with_its_summary() -> None:
    shown = run_here("--help").stdout
    for name, command in cli.commands.items():
        (line,) = re.findall(rf"^  {name} +(\S.*)$", shown, re.MULTILINE)
        assert line == command.get_short_help_str(1_000)
    assert OTHER_COMMANDS not in shown
    titles = [line.removesuffix(":") for line in shown.splitlines() if re.fullmatch(r"\S.*:", line)]
    assert titles == [*SECTIONS, "Options", "Exit codes"]


def test_help_of_a_group_lists_its_commands() -> None:
    shown = run_here("token", "--help").stdout
    assert re.findall(r"^  (add|list|revoke) +\S.*\.$", shown, re.MULTILINE) == ["add", "list", "revoke"]


def test_help_ends_with_the_exit_codes() -> None:
    shown = in_process("--help").stdout
    assert re.findall(r"^  (\d+) +\S", shown, re.MULTILINE) == [str(code) for code in EXIT_CODES]


@pytest.mark.parametrize("words", [words for words, _ in paths()], ids=" ".join)
def test_help_of_a_command_is_short(words: Sequence[str]) -> None:
    done = run_here(*words, "--help")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) < 60
    settings = set(re.findall(r"^  --([a-z-]+) VALUE", done.stdout, re.MULTILINE))
    own = SETTINGS_SHOWN if words != ("serve",) else (*SETTINGS_SHOWN, "transport", "host", "port")
    assert settings <= {name.replace("_", "-") for name in own} | {"expires"}


def test_help_settings_lists_every_setting() -> None:
    shown = run_here("stats", "--help-settings").stdout
    for name in Settings.model_fields:
        word = name if name in NOT_AS_FLAGS else f"--{name.replace('_', '-')}"
        assert re.search(rf"^  {word}\b", shown, re.MULTILINE), name
    assert "default 8000" in shown


def test_every_example_in_a_help_text_can_be_parsed() -> None:
    examples = [line for _, command in paths() if isinstance(command, Command) for line, _ in command.examples]
    assert len(examples) > 10
    for line in examples:
        program, *words = shlex.split(line.partition(" > ")[0])
        assert program == PROGRAM
        group, args = cli, words
        context = click.Context(cli)
        while isinstance(group, click.Group):
            _, command, args = group.resolve_command(context, args)
            assert command is not None
            group = command  # type: ignore[assignment]
        assert group.make_context(words[0], args) is not None


def test_every_command_in_a_message_exists() -> None:
    named = set()
    for file in sorted((ROOT / "memoryos_mcp").rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        named |= {(found[1], found[2]) for found in re.finditer(rf"{PROGRAM} ([a-z][\w-]*)(?: ([a-z][\w-]*))?", text)}
    assert len(named) > 20
    for name, second in named:
        command = cli.commands.get(name)
        assert command is not None, f"{PROGRAM} {name}"
        if isinstance(command, click.Group) and second is not None:
            assert second in command.commands, f"{PROGRAM} {name} {second}"


def test_without_arguments_help_goes_to_stderr_with_exit_code_2() -> None:
    done = run_here()
    assert (done.returncode, done.stdout) == (2, "")
    assert "serve" in done.stderr


def test_every_command_with_a_report_has_a_json_option() -> None:
    without = {words[0] for words, command in paths() if not any(o.name == "as_json" for o in command.params)}
    assert without <= WITHOUT_JSON


# Mistakes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "meant"),
    [
        (["stat"], "'stats'"),
        (["token", "lst"], "'list'"),
        (["search", "x", "--explian"], "'--explain'"),
        (["serve", "--short-term-capcity", "3"], "'--short-term-capacity'"),
        (["token", "add", "ada", "--scope", "raed"], "'read'"),
        (["completion", "bsh"], "'bash'"),
        (["install", "cursor", "--dry-run"], "'--client cursor'"),
        (["serve", "--transport", "htp"], "did you mean http?"),
        (["import", __file__, "--format", "chatgtp"], "did you mean chatgpt?"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_a_mistyped_word_gets_a_suggestion(args: list[str], meant: str, tmp_path: Path) -> None:
    done = run_here(*args, env={"MEMORYOS_DATA_STORAGE_PATH": str(tmp_path)})
    assert done.returncode == 2
    assert done.stdout == ""
    assert meant in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unreadable_config_file_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "config.json").mkdir()
    for path in (tmp_path / "config.json", tmp_path / "missing.json", Path("/proc/self/mem")):
        done = run_here("stats", "--config", path)
        assert (done.returncode, done.stdout) == (2, "")
        assert str(path) in done.stderr
        assert "Traceback" not in done.stderr


def test_a_full_disk_is_reported_in_one_line() -> None:
    for args in (["--help"], ["token", "list", "--json"]):
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run(
                [sys.executable, "-m", "memoryos_mcp", *args],
                check=False,
                stdout=full,
                stderr=subprocess.PIPE,
                env=clean_environment(),
                timeout=LIMIT_S,
            )
        assert done.returncode == 1
        assert re.fullmatch(rb"memoryos-mcp: .*No space left on device\n", done.stderr)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (PermissionError(13, "Permission denied", "/some/file"), "/some/file: Permission denied"),
        (ValueError("with a text that nobody is to see"), f"unexpected ValueError in {Path(__file__).name}, line "),
        (KeyboardInterrupt(), "interrupted"),
        (StorageError("it is of eve\x1b[2J\u202e"), "it is of eve\u241b[2J\ufffd"),
    ],
    ids=["system", "defect", "interrupt", "escapes"],
)
def test_an_unexpected_error_is_one_line(
    error: BaseException, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    group = Group(PROGRAM)

    @group.command()
    def fail() -> None:
        raise error

    monkeypatch.setattr(sys, "argv", [PROGRAM, "fail"])
    with pytest.raises(SystemExit) as ended:
        run(group)
    assert ended.value.code == (130 if isinstance(error, KeyboardInterrupt) else 1)
    shown = capsys.readouterr().err
    assert told in shown
    assert len(shown.strip().splitlines()) == 1
    assert "nobody is to see" not in shown


# Exit codes -----------------------------------------------------------------------------------------------------------


def test_success_failure_and_misuse_have_exit_codes(tmp_path: Path) -> None:
    assert in_process("token", "list", "--data-storage-path", tmp_path).returncode == 0
    assert in_process("stats", "--data-storage-path", tmp_path).returncode == 1
    assert in_process("stats", "--port", "no", "--data-storage-path", tmp_path).returncode == 2


def test_ctrl_c_during_imports_ends_with_one_line(tmp_path: Path) -> None:
    # A module that sends SIGINT replaces the first library that is imported.
    pressed = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"
    (tmp_path / "click.py").write_text(pressed, encoding="utf-8")
    path = os.pathsep.join((str(tmp_path), *sys.path))
    done = in_process("stats", env={"PYTHONPATH": path})
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "\nmemoryos-mcp: interrupted\n"


def test_ctrl_c_ends_the_demo_with_exit_code_130(tmp_path: Path) -> None:
    in_terminal = InTerminal("demo")
    in_terminal.read_until("A real server")
    in_terminal.send("\x03")
    assert in_terminal.ended() == 130
    assert "interrupted" in in_terminal.shown
    assert "Traceback" not in in_terminal.shown


@pytest.mark.parametrize("args", [["--help"], ["serve", "--help-settings"], ["completion", "bash"]], ids=" ".join)
def test_a_closed_output_ends_a_command_quietly(args: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "memoryos_mcp", *args],
            check=False,
            stdout=writing,
            stderr=subprocess.PIPE,
            env=clean_environment(),
            timeout=LIMIT_S,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


class InTerminal:
    """A command in a pseudo-terminal; ``shown`` is its output so far."""

    def __init__(self, *args: object, columns: int = 80, env: dict[str, str] | None = None) -> None:
        self.shown = ""
        environment = clean_environment({"TERM": "xterm", "COLUMNS": str(columns), **(env or {})})
        for name in ("NO_COLOR", "FORCE_COLOR"):
            if name not in (env or {}):
                environment.pop(name, None)
        self._process, self._terminal = pty.fork()
        if not self._process:
            os.execve(sys.executable, [sys.executable, "-m", "memoryos_mcp", *map(str, args)], environment)  # noqa: S606

    def send(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def read_until(self, text: str) -> None:
        wait_until(lambda: not self._read() or text in self.shown, f"the terminal shows {text!r}", LIMIT_S)
        assert text in self.shown

    def ended(self) -> int:
        """Read to the end and return the exit code."""
        try:
            wait_until(lambda: not self._read(), "the command has ended", LIMIT_S)
        except AssertionError:
            os.kill(self._process, signal.SIGKILL)
            raise
        finally:
            _, status = os.waitpid(self._process, 0)
            os.close(self._terminal)
        return os.waitstatus_to_exitcode(status)

    def _read(self) -> bool:
        """Read available output; return False at its end."""
        try:
            data = os.read(self._terminal, 65_536)
        except OSError:  # the process has closed the terminal
            return False
        self.shown += data.decode("utf-8", "replace")
        return bool(data)


# Completion -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the command, for PATH."""
    folder = tmp_path_factory.mktemp("bin")
    program = folder / PROGRAM
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m memoryos_mcp "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return folder


def completed(programs: Path, *words: str) -> list[str]:
    """Return the completions of bash for the last word, with the script sourced."""
    line = f"""
        source <({PROGRAM} completion bash)
        complete -p {PROGRAM} >&2
        COMP_WORDS=({" ".join(map(shlex.quote, [PROGRAM, *words]))})
        COMP_CWORD={len(words)}
        _memoryos_mcp_completion {PROGRAM}
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", line],
        capture_output=True,
        check=True,
        encoding="utf-8",
        env=clean_environment({"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}),
        timeout=LIMIT_S,
    )
    assert "_memoryos_mcp_completion" in done.stderr
    return done.stdout.split()


def test_bash_completes_commands_and_options(programs: Path) -> None:
    assert completed(programs, "st") == ["stats"]
    assert completed(programs, "search", "--exp") == ["--explain"]


def test_bash_completion_returns_commands_options_and_values() -> None:
    def given(*words: str) -> list[str]:
        words_of_line = shlex.join([PROGRAM, *words])
        environment = {VARIABLE: "bash_complete", "COMP_WORDS": words_of_line, "COMP_CWORD": str(len(words))}
        return [line.partition(",")[2] for line in run_here(env=environment).stdout.splitlines()]

    assert set(cli.commands) == set(given(""))
    assert given("token", "") == ["add", "list", "revoke"]
    assert given("serve", "--transport", "") == ["stdio", "http", "sse", "all"]
    assert given("serve", "--llm-log", "t") == ["true"]
    assert given("completion", "") == list(SHELLS)


@pytest.mark.parametrize(
    ("shell", "words", "cword", "proposed"),
    [
        ("zsh", f"{PROGRAM} sea", "1", "plain\nsearch\nSearch a memory as an assistant would."),
        ("fish", f"{PROGRAM} sea", "sea", "plain,search\tSearch a memory as an assistant would."),
    ],
)
def test_zsh_and_fish_get_commands_with_their_help(shell: str, words: str, cword: str, proposed: str) -> None:
    environment = {VARIABLE: f"{shell}_complete", "COMP_WORDS": words, "COMP_CWORD": cword}
    assert proposed in run_here(env=environment).stdout


def test_each_completion_script_is_for_its_shell() -> None:
    scripts = {shell: run_here("completion", shell).stdout for shell in SHELLS}
    assert scripts["zsh"].startswith(f"#compdef {PROGRAM}\n")
    assert f"complete -o nosort -F _memoryos_mcp_completion {PROGRAM}" in scripts["bash"]
    assert f"complete --no-files --command {PROGRAM}" in scripts["fish"]
    for shell, script in scripts.items():
        assert f"{VARIABLE}={shell}_complete" in script
    assert run_here("completion", env={"SHELL": "/usr/bin/fish"}).stdout == scripts["fish"]
    unknown = run_here("completion", env={"SHELL": "/bin/tcsh"})
    assert (unknown.returncode, "bash, zsh, fish" in unknown.stderr) == (2, True)


def test_a_terminal_shows_where_to_install_the_script() -> None:
    in_terminal = InTerminal("completion", "fish")
    assert in_terminal.ended() == 0
    assert "~/.config/fish/completions/memoryos-mcp.fish" in in_terminal.shown


def test_completion_imports_no_slow_library() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "memoryos_mcp"],
        capture_output=True,
        check=True,
        env=clean_environment({VARIABLE: "bash_complete", "COMP_WORDS": f"{PROGRAM} ser", "COMP_CWORD": "1"}),
        timeout=LIMIT_S,
    )
    assert done.stdout.split() == [b"plain,serve", b"plain,search"] or done.stdout.split() == [b"plain,serve"]
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.decode().splitlines()}
    assert "click" in loaded
    assert not loaded & HEAVY


# The document ---------------------------------------------------------------------------------------------------------


def document() -> str:
    return (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")


def test_the_document_lists_all_commands_by_section() -> None:
    told = re.findall(r"^\| `memoryos-mcp ([a-z-]+)[^`]*` \|", document(), re.MULTILINE)
    in_order = [name for names in SECTIONS.values() for name in names if name in cli.commands]
    assert told == in_order
    assert all(f"\n### {title}\n" in document() for title in SECTIONS)


def test_the_document_has_the_exit_codes_of_the_program() -> None:
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", document(), re.MULTILINE)
    assert {int(code): meaning for code, meaning in rows} == EXIT_CODES


@pytest.mark.parametrize("name", ["correct", "store", "install", "instal", "delete", "forgive", "reset"])
def test_no_destructive_command_is_suggested(name: str) -> None:
    told = run_here(name, "k4").stderr
    assert not any(f"'{command}'" in told.partition("Did you mean")[2] for command in DESTRUCTIVE)


@pytest.mark.parametrize(("typed", "meant"), [("forgt", "forget"), ("forgett", "forget"), ("restor", "restore")])
def test_a_mistyped_destructive_command_is_suggested(typed: str, meant: str) -> None:
    assert f"Did you mean {meant!r}?" in run_here(typed).stderr


def test_a_command_names_its_own_options_in_errors(tmp_path: Path) -> None:
    data = ("--data-storage-path", str(tmp_path / "data"))
    missing = run_here("forget", "--query", "tea", *data)
    assert (missing.returncode, "has no memory" in missing.stderr) == (1, True)
    with Memoryos("default_user", data_storage_path=tmp_path / "data", **NO_MODEL) as memory:
        memory.add_memory("I like tea.", "Noted.")
    for arguments, option in (
        (("--id", "nothing"), "--id:"),
        (("--after", "some day"), "--after:"),
        ((), "--everything"),
        (("--id", "k1", "--everything"), "Use --id, --everything"),
    ):
        refused = run_here("forget", *arguments, "--yes", *data)
        assert (refused.returncode, option in refused.stderr, "ids" in refused.stderr.split(":")[1]) == (2, True, False)


def test_errors_name_the_kind_of_an_unusable_file(tmp_path: Path) -> None:
    data = ("--data-storage-path", str(tmp_path / "data"))
    address = run_here("import", "https://example.org/memory.jsonl", *data)
    assert (address.returncode, "https://example.org/memory.jsonl is a URL" in address.stderr) == (1, True)
    readme = run_here("restore", ROOT / "README.md", *data)
    assert (readme.returncode, "is not a backup" in readme.stderr, "move the file" in readme.stderr) == (1, True, False)
    with Memoryos("default_user", data_storage_path=tmp_path / "data", **NO_MODEL) as memory:
        memory.add_memory("I like tea.", "Noted.")
    table = run_here("export", tmp_path / "memory.csv", *data)
    assert (table.returncode, ".jsonl" in table.stderr, (tmp_path / "memory.csv").exists()) == (2, True, False)
