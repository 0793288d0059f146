import asyncio
import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from memoryos_mcp.cli.command_line import settings_options
from memoryos_mcp.cli.commands.llm_log import show_llm_log
from memoryos_mcp.config.sources import load_settings
from memoryos_mcp.errors import ModelError, StorageError
from memoryos_mcp.llm.chat import ChatReply, ChatRequest, Listener, Message, Purpose, ReplyForm, Usage
from memoryos_mcp.llm.recording import LOG_NAME, RecordingChat
from memoryos_mcp.storage.sqlite.paths import database_file
from tests.fakes import Clock

USER = "Zoë"


class EchoChat:
    """Replies with the last message in capitals, cut if it ends with an ellipsis; fails on `fail`."""

    name = "echo-1"

    async def complete(self, request: ChatRequest, listener: Listener | None = None) -> ChatReply:
        text = request.messages[-1].content
        if text == "fail":
            msg = "the endpoint refused: quota spent"
            raise ModelError(msg)
        return ChatReply(text.upper(), Usage(1234, 56), is_cut=text.endswith("…"))

    async def aclose(self) -> None:
        """Do nothing."""


@click.command()
@settings_options
@click.option("--last", type=click.IntRange(min=1), default=20)
@click.option("--show", "number", type=click.IntRange(min=1))
@click.option("--json", "as_json", is_flag=True)
def command(config_file: Path | None, last: int, number: int | None, as_json: bool, **flags: str | None) -> None:
    settings = load_settings(config_file, flags)
    show_llm_log(settings, last=last, number=number, as_json=as_json)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return the path of the user's log; its folder exists, the log does not."""
    path = database_file(tmp_path, USER).with_name(LOG_NAME)
    path.parent.mkdir(parents=True)
    return path


def write(log: Path, *texts: str) -> None:
    """Log a call for each text, a minute apart."""

    async def all_calls() -> None:
        clock = Clock()
        chat = RecordingChat(EchoChat(), log, clock=clock)
        for text in texts:
            messages = (Message("system", "Find the topics."), Message("user", text))
            request = ChatRequest(Purpose.LEARN, messages, ReplyForm("topics", {"type": "object"}))
            try:
                async with asyncio.timeout(10):
                    await chat.complete(request)
            except ModelError:
                pass
            clock.now += timedelta(minutes=1)
        await chat.aclose()

    asyncio.run(all_calls())


def run(data: Path, *arguments: str, env: Mapping[str, str] | None = None) -> Result:
    flags = ["--data-storage-path", str(data), "--user-id", USER, "--timezone", "Asia/Tokyo"]
    return CliRunner().invoke(command, [*flags, *arguments], env={"COLUMNS": "100", **(env or {})})


def rows(result: Result) -> list[list[str]]:
    assert result.exit_code == 0, result.output
    return [line.split() for line in result.stdout.splitlines()]


def test_calls_are_listed_in_a_table_with_the_newest_last(log: Path, tmp_path: Path) -> None:
    write(log, "one", "two…", "fail")
    header, one, two, failed = rows(run(tmp_path))
    assert header == ["#", "time", "purpose", "prompt", "reply", "ms", "result"]
    assert one[:6] == ["1", "2026-05-08", "21:00:00", "learn", "1234", "56"]
    assert (one[7:], two[7:]) == (["ok"], ["cut"])
    assert failed[:4] == ["3", "2026-05-08", "21:02:00", "learn"]
    assert " ".join(failed[5:]) == "error: the endpoint refused: quota spent"


def test_the_last_calls_are_listed_with_their_numbers(log: Path, tmp_path: Path) -> None:
    write(log, *(f"text {number}" for number in range(30)))
    assert [row[0] for row in rows(run(tmp_path))[1:]] == [str(number) for number in range(11, 31)]
    assert [row[0] for row in rows(run(tmp_path, "--last", "2"))[1:]] == ["29", "30"]


def test_one_call_is_shown_in_full(log: Path, tmp_path: Path) -> None:
    long = "word " * 200 + "[bold]end[/bold]"
    write(log, "other", f"first line\n{long}")
    result = run(tmp_path, "--show", "2")
    assert result.exit_code == 0
    about, *parts = result.stdout.splitlines()
    assert about.startswith("Call 2, 2026-05-08 21:01:00: learn, form topics, model echo-1, ")
    assert about.endswith("tokens 1234 + 56")
    assert [part.strip("─ ") for part in parts] == [
        "system",
        "Find the topics.",
        "user",
        "first line",
        long,
        "reply",
        "FIRST LINE",
        long.upper(),
    ]


def test_a_shown_call_has_its_error_or_is_marked_as_cut(log: Path, tmp_path: Path) -> None:
    write(log, "fail", "two…")
    assert run(tmp_path, "--show", "1").stdout.splitlines()[-1] == "error: the endpoint refused: quota spent"
    assert "reply, cut off at the token limit" in run(tmp_path, "--show", "2").stdout


def test_shown_text_contains_no_terminal_commands(log: Path, tmp_path: Path) -> None:
    write(log, "\x1b]0;title\x07 and \x9b2J\r")
    shown = run(tmp_path, "--show", "1").stdout
    assert "␛]0;title␇ and �2J\n" in shown
    assert not any(ord(char) < 32 and char != "\n" for char in shown)


def test_json_output_is_the_unchanged_lines_of_the_log(log: Path, tmp_path: Path) -> None:
    write(log, "東京", "two", "three")
    written = log.read_bytes().splitlines()
    assert run(tmp_path, "--json", "--last", "2").stdout_bytes.splitlines() == written[1:]
    only: dict[str, Any] = json.loads(run(tmp_path, "--json", "--show", "1").stdout)
    assert only["request"]["messages"][1]["content"] == "東京"


@pytest.mark.parametrize("content", [None, b"", b"\n\n"])
def test_without_a_log_the_output_says_how_to_enable_it(content: bytes | None, log: Path, tmp_path: Path) -> None:
    if content is not None:
        log.write_bytes(content)
    result = run(tmp_path)
    assert result.exit_code == 0
    assert str(log) in result.stdout
    for way in ('"llm_log": true', "MEMORYOS_LLM_LOG=true", "--llm-log true"):
        assert way in result.stdout
    as_json = run(tmp_path, "--json")
    assert (as_json.exit_code, as_json.stdout) == (0, "")
    assert "llm_log" in as_json.stderr


def test_for_an_empty_log_the_output_does_not_say_enable_it(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = load_settings(None, {"data_storage_path": str(tmp_path), "user_id": USER, "llm_log": True})
    show_llm_log(settings, last=20, number=None, as_json=False)
    told = capsys.readouterr().out
    assert "no request to the LLM was logged" in told
    assert "MEMORYOS_LLM_LOG" not in told


@pytest.mark.parametrize("texts", [(), ("one",)])
@pytest.mark.parametrize("number", ["2", "0", "-1", "x"])
def test_an_unknown_number_is_a_usage_error(texts: tuple[str, ...], number: str, log: Path, tmp_path: Path) -> None:
    write(log, *texts)
    result = run(tmp_path, "--show", number)
    assert result.exit_code == 2
    assert "--show" in result.stderr
    assert result.stdout == ""


def test_a_damaged_line_is_listed_as_unreadable(log: Path, tmp_path: Path) -> None:
    write(log, "one")
    with log.open("ab") as file:
        file.write(b'{"custom_id": "cut sh\n')
    write(log, "three")
    listed = rows(run(tmp_path))
    assert [row[0] for row in listed[1:]] == ["1", "2", "3"]
    assert listed[2][1:] == ["unreadable", "line"]
    shown = run(tmp_path, "--show", "2")
    assert (shown.exit_code, shown.stdout) == (0, "Line 2 of the log is damaged and cannot be shown.\n")


def test_each_user_has_a_separate_log(log: Path, tmp_path: Path) -> None:
    write(log, "one")
    assert "There is no log" in run(tmp_path, "--user-id", "zoe").stdout


def test_the_error_for_an_unreadable_log_names_it(log: Path, tmp_path: Path) -> None:
    log.mkdir()
    for arguments in ([], ["--show", "1"]):
        result = run(tmp_path, *arguments)
        assert isinstance(result.exception, StorageError)
        assert str(log) in str(result.exception)
