"""Hooks: each client's dialect, and real hook processes with a real daemon and a real memory."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import psutil
import pytest

from memoryos_mcp.server.hooks import dialects, hook, spool
from memoryos_mcp.server.hooks.daemon import LOCK, project_of
from memoryos_mcp.server.hooks.hook import STARTED
from memoryos_mcp.storage.sqlite.paths import database_file
from tests.claude_api import claude_api
from tests.commands import run_on
from tests.programs import program
from tests.servers import clean_environment, wait_until

LIMIT_S = 120.0
WAIT_S = "60"
CLAUDE = "npm/node_modules/.bin/claude"

pytestmark = pytest.mark.skipif(os.name == "nt", reason="kills processes by POSIX signals")


@dataclass
class Hooks:
    """Hooks of one client, with a state folder and a memory of their own."""

    folder: Path
    client: str = "claude-code"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def environment(self) -> dict[str, str]:
        return clean_environment({"XDG_STATE_HOME": str(self.folder / "state"), "HOME": str(self.folder)})

    @property
    def options(self) -> list[str]:
        return ["--client", self.client, "--wait", WAIT_S, "--data-storage-path", str(self.data)]

    def run(self, event: str, given: object, *options: str) -> str:
        """Run a hook, which must end with exit code 0 and nothing on stderr, and return its stdout."""
        line = [sys.executable, "-m", "memoryos_mcp", "hook", event, *(options or self.options)]
        text = given if isinstance(given, str) else json.dumps(given)
        done = subprocess.run(
            line, input=text, env=self.environment, capture_output=True, encoding="utf-8", timeout=LIMIT_S
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def turn(self, session: str, prompt: str, answer: str = "Noted.") -> str:
        """Run the hooks of one turn, and return what was put into the context."""
        context = self.run("prompt", {"session_id": session, "prompt": prompt, "cwd": str(self.folder)})
        self.run("stop", {"session_id": session, "last_assistant_message": answer, "cwd": str(self.folder)})
        return context

    @property
    def state(self) -> Path:
        (found,) = [each for each in (self.folder / "state/memoryos-mcp/hooks").iterdir() if each.is_dir()]
        return found

    @property
    def waiting(self) -> list[Path]:
        return [Path(each) for each in spool.waiting(str(self.state))]

    def stored(self) -> list[str]:
        """Return what the user said in each page of the memory, oldest first."""
        file = self.folder / "export.jsonl"
        run_on(self.data, "export", file)
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        return [line["user_input"] for line in lines if line.get("user_input")]

    def wait_until_empty(self) -> None:
        wait_until(lambda: not self.waiting, "the spool is empty", LIMIT_S)

    def allow_start(self) -> None:
        """Let the next hook start a daemon at once."""
        (self.state / STARTED).unlink(missing_ok=True)

    def kill(self) -> None:
        """Kill the daemon, if it runs, and those that wait to take its place."""
        home = self.environment["XDG_STATE_HOME"]
        for process in psutil.process_iter(["cmdline", "environ"]):
            line, environment = process.info["cmdline"] or [], process.info["environ"] or {}
            if "daemon" in line and environment.get("XDG_STATE_HOME") == home:
                process.kill()
                process.wait(LIMIT_S)


def _runs(number: int) -> bool:
    status = Path(f"/proc/{number}/stat")
    try:
        return status.read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _damage(file: Path) -> Path:
    """Put another file in the place of a memory, and return the folder with the memory's file and its journals.

    They are moved and not copied, because a journal belongs to one file and not to its copies.
    """
    aside = file.parents[2].with_name("aside")
    aside.mkdir()
    for each in file.parent.glob(f"{file.name}*"):
        each.rename(aside / each.name)
    file.write_bytes(b"not a database" * 1000)
    return aside


def _restore(file: Path, aside: Path) -> None:
    for each in file.parent.glob(f"{file.name}*"):
        each.unlink()
    for each in aside.iterdir():
        each.rename(file.with_name(each.name))


@pytest.fixture
def hooks(tmp_path: Path) -> Iterator[Hooks]:
    made = Hooks(tmp_path)
    yield made
    made.kill()


SAID = "My sister Ilse lives in Utrecht."
ASKED = "Where does my sister Ilse live?"


@pytest.mark.parametrize(
    ("client", "given", "answer"),
    [
        ("claude-code", {"last_assistant_message": "Fine."}, "Fine."),
        ("codex", {"turn_id": "t1", "last_assistant_message": "Fine."}, "Fine."),
        ("gemini", {"prompt": "Hello", "prompt_response": "Fine."}, "Fine."),
        ("cursor", {"generation_id": "g1", "text": "Fine."}, "Fine."),
    ],
)
def test_each_client_gives_the_answer(client: str, given: dict[str, Any], answer: str) -> None:
    assert client in dialects.EVENTS
    assert dialects.answer_of(given) == answer


@pytest.mark.parametrize("client", ["claude-code", "codex", "gemini"])
def test_context_is_answered_in_the_documented_form(client: str) -> None:
    name = dialects.EVENTS[client]["prompt"]
    told = json.loads(dialects.reply(client, "prompt", "text"))
    assert told == {"hookSpecificOutput": {"hookEventName": name, "additionalContext": "text"}}


def test_cursor_gets_context_at_the_start() -> None:
    assert json.loads(dialects.reply("cursor", "session-start", "text")) == {"additional_context": "text"}


def test_a_transcript_gives_the_texts_without_tools(tmp_path: Path) -> None:
    lines = [
        {"type": "user", "uuid": "u1", "message": {"content": "Run it"}},
        {"type": "assistant", "message": {"content": [{"type": "tool_use", "name": "Bash", "input": {}}]}},
        {"type": "user", "uuid": "u2", "message": {"content": [{"type": "tool_result", "content": "noise"}]}},
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "It ran."}]}},
    ]
    file = tmp_path / "transcript.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)) + "\nnot JSON", encoding="utf-8")
    assert dialects.last_exchange({"transcript_path": str(file)}) == ("Run it", "It ran.", "u1")


def test_a_project_is_named_after_its_repository(tmp_path: Path) -> None:
    inner = tmp_path / "boat" / "src"
    inner.mkdir(parents=True)
    (tmp_path / "boat" / ".git").mkdir()
    assert project_of(str(inner)) == "boat"
    assert project_of(None) is None


def test_the_hook_imports_only_the_standard_library() -> None:
    code = (
        "import sys\nfrom memoryos_mcp.server.hooks import hook\n"
        "print(*{name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, encoding="utf-8", cwd=Path(__file__).parents[1]
    )
    assert set(done.stdout.split()) <= {"memoryos_mcp", "__main__", "site"}, done.stdout + done.stderr


def test_a_turn_is_stored_once_and_recalled(hooks: Hooks) -> None:
    hooks.turn("s1", SAID)
    hooks.run("stop", {"session_id": "s1", "last_assistant_message": "Noted."})
    hooks.wait_until_empty()
    assert hooks.stored() == [SAID]
    told = json.loads(hooks.run("prompt", {"session_id": "s2", "prompt": ASKED}))
    assert "Utrecht" in told["hookSpecificOutput"]["additionalContext"]
    for remark in ("thanks", "run the tests", "yes, please"):
        assert hooks.run("prompt", {"session_id": "s3", "prompt": remark}) == ""
    assert hooks.run("prompt", {"session_id": "s1", "prompt": ASKED}).count("Earlier conversations, best") == 0


def test_without_the_daemon_memories_are_found_by_words(hooks: Hooks) -> None:
    hooks.turn("s1", SAID)
    for number in range(9):
        hooks.turn("s2", f"Box {number} of the move holds winter coats number {number}.")
    hooks.wait_until_empty()
    hooks.kill()
    (hooks.state / STARTED).touch()
    told = json.loads(hooks.run("prompt", {"session_id": "s3", "prompt": ASKED}))["hookSpecificOutput"]
    assert "User: My sister Ilse lives in Utrecht." in told["additionalContext"]
    assert told["additionalContext"].count("winter coats") == 0
    for other in ("thanks", "How do I sort a list of names in Python?", "Refactor the parser so that it fails early."):
        assert hooks.run("prompt", {"session_id": "s3", "prompt": other}) == ""
    assert hooks.run("prompt", {"session_id": "s1", "prompt": ASKED}) == ""
    assert not (hooks.state / "hook.log").exists()


def test_without_the_daemon_no_damaged_page_is_shown_and_no_file_changes(hooks: Hooks) -> None:
    hooks.turn("s1", SAID)
    hooks.wait_until_empty()
    hooks.kill()
    (hooks.state / STARTED).touch()
    file = database_file(hooks.data, "default_user")
    question = {"session_id": "s3", "prompt": ASKED}
    with closing(apsw.Connection(str(file))) as connection:  # closing it applies the journal of the killed daemon
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for each in file.parent.glob(f"{file.name}-*"):
        each.unlink()
    before = {each: each.read_bytes() for each in file.parent.iterdir()}
    assert "Utrecht" in hooks.run("prompt", question)
    assert {each: each.read_bytes() for each in file.parent.iterdir()} == before
    with closing(apsw.Connection(str(file))) as connection:
        connection.execute("UPDATE pages SET agent_response = 'Changed on disk.'")
    assert hooks.run("prompt", question) == ""


def test_walls_hide_pages_from_a_hook_without_the_daemon(
    hooks: Hooks, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"project_isolation": True, "data_storage_path": str(hooks.data)}), encoding="utf-8")
    options = ("--client", "claude-code", "--wait", WAIT_S, "--config", str(config))
    monkeypatch.setattr(Hooks, "options", property(lambda _: list(options)))
    hooks.turn("s1", SAID)
    hooks.wait_until_empty()
    hooks.kill()
    (hooks.state / STARTED).touch()
    assert hooks.run("prompt", {"session_id": "s3", "prompt": ASKED}) == ""


def test_on_windows_a_daemon_is_missing_until_its_address_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hook, "os", SimpleNamespace(name="nt", path=os.path))
    addresses: list[dict[str, object]] = [{}, {"port": 1}]
    for address in addresses:
        spool.write(str(tmp_path / hook.ADDRESS), address)
        with pytest.raises(ConnectionRefusedError):
            hook.connected(str(tmp_path), 1.0)


def test_turns_wait_while_the_daemon_is_dead(hooks: Hooks) -> None:
    said = [f"The code of locker {number} is in drawer {number}." for number in range(3)]
    for number, text in enumerate(said):
        hooks.turn(f"s{number}", text)
        hooks.kill()
    hooks.allow_start()
    hooks.run("session-start", {"session_id": "s9"})
    hooks.wait_until_empty()
    assert hooks.stored() == said


def test_a_damaged_memory_keeps_the_turns_waiting(hooks: Hooks) -> None:
    hooks.turn("s1", SAID)
    hooks.wait_until_empty()
    hooks.kill()
    file = database_file(hooks.data, "default_user")
    whole = _damage(file)
    hooks.allow_start()
    hooks.turn("s2", "I moved to Ghent.")
    log = hooks.state / "hook.log"
    wait_until(lambda: log.exists() and "turns wait" in log.read_text(encoding="utf-8"), "a line in the log", LIMIT_S)
    assert len(hooks.waiting) == 1
    assert "Ghent" not in log.read_text(encoding="utf-8")
    hooks.kill()
    _restore(file, whole)
    hooks.allow_start()
    hooks.run("session-start", {"session_id": "s3"})
    hooks.wait_until_empty()
    assert hooks.stored() == [SAID, "I moved to Ghent."]


@pytest.mark.parametrize("content", ["{not JSON", None])
def test_an_unreadable_config_makes_a_hook_do_nothing(hooks: Hooks, content: str | None) -> None:
    config = hooks.folder / "config.json"
    if content is not None:
        config.write_text(content, encoding="utf-8")
    options = ("--client", "claude-code", "--config", str(config))
    assert hooks.run("prompt", {"session_id": "s1", "prompt": SAID}, *options) == ""
    (log,) = (hooks.folder / "state").rglob("hook.log")
    assert "nothing done" in log.read_text(encoding="utf-8")
    assert "Utrecht" not in log.read_text(encoding="utf-8")
    assert not hooks.data.exists()


@pytest.mark.parametrize("given", ["", "{", "[]", "null", '{"session_id": 5, "prompt": 7}'])
def test_bad_input_disturbs_nobody(hooks: Hooks, given: str) -> None:
    assert hooks.run("prompt", given) == ""


def test_a_state_folder_that_cannot_be_written(hooks: Hooks) -> None:
    (hooks.folder / "state").write_text("a file", encoding="utf-8")
    assert hooks.run("prompt", {"session_id": "s1", "prompt": SAID}) == ""
    assert hooks.run("stop", {"session_id": "s1", "last_assistant_message": "Fine."}) == ""


def test_of_two_daemons_one_serves(hooks: Hooks) -> None:
    hooks.turn("s1", SAID)
    hooks.wait_until_empty()
    line = [sys.executable, "-m", "memoryos_mcp", "daemon", "--data-storage-path", str(hooks.data)]
    second = subprocess.run(line, env=hooks.environment, capture_output=True, encoding="utf-8", timeout=LIMIT_S)
    assert (second.returncode, second.stderr) == (0, "")
    assert _runs(int((hooks.state / LOCK).read_text(encoding="utf-8")))


def test_an_idle_daemon_ends(hooks: Hooks) -> None:
    line = [sys.executable, "-m", "memoryos_mcp", "daemon", "--idle", "0.1", "--data-storage-path", str(hooks.data)]
    done = subprocess.run(line, env=hooks.environment, capture_output=True, encoding="utf-8", timeout=LIMIT_S)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_changed_config_starts_a_new_daemon(hooks: Hooks) -> None:
    config = hooks.folder / "config.json"
    config.write_text(json.dumps({"data_storage_path": str(hooks.data)}), encoding="utf-8")
    options = ("--client", "claude-code", "--wait", WAIT_S, "--config", str(config))
    hooks.run("prompt", {"session_id": "s1", "prompt": SAID}, *options)
    hooks.run("stop", {"session_id": "s1", "last_assistant_message": "Noted."}, *options)
    hooks.wait_until_empty()
    first = (hooks.state / LOCK).read_text(encoding="utf-8")
    config.write_text(json.dumps({"data_storage_path": str(hooks.data), "short_term_capacity": 3}), encoding="utf-8")
    hooks.allow_start()
    hooks.run("session-start", {"session_id": "s2"}, *options)
    wait_until(lambda: (hooks.state / LOCK).read_text(encoding="utf-8") not in ("", first), "a new daemon", LIMIT_S)


def test_secrets_are_removed_before_a_turn_is_stored(hooks: Hooks) -> None:
    key = "sk-" + "a1B2c3D4e5F6g7H8i9J0k1L2" * 2
    hooks.turn("s1", f"My key is {key}")
    hooks.wait_until_empty()
    assert key not in json.dumps(hooks.stored())


def _claude(hooks: Hooks, url: str, prompt: str) -> None:
    environment = hooks.environment | {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    environment.pop("CLAUDE_CONFIG_DIR", None)
    line = [program(CLAUDE), "-p", prompt]
    done = subprocess.run(
        line,
        env=environment,
        cwd=hooks.folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _settings_of_claude(hooks: Hooks) -> None:
    """Write the hooks as install does, with a long time to wait for recall on a loaded machine."""
    from memoryos_mcp.cli.installer import hooks as installed
    from memoryos_mcp.cli.installer.entries import Local

    path = hooks.folder / ".claude" / "settings.json"
    path.parent.mkdir()
    args = ("-m", "memoryos_mcp", "serve", "--wait", WAIT_S, "--data-storage-path", str(hooks.data))
    plan = installed.plan_install("claude-code", path, Local(sys.executable, args))
    path.write_text(plan.after.replace('"timeout": 10', '"timeout": 120'), encoding="utf-8")


@pytest.mark.campaign
@pytest.mark.parametrize("fault", ["none", "killed", "damaged", "full"])
def test_claude_code_remembers_without_a_tool(hooks: Hooks, fault: str) -> None:
    program(CLAUDE)
    _settings_of_claude(hooks)
    long = " Coats." * 10_000 if fault == "full" else ""
    said = [SAID, *(f"Box {number} of the move holds winter coats number {number}.{long}" for number in range(9))]
    file = database_file(hooks.data, "default_user")
    with claude_api() as api, small_disk(hooks) if fault == "full" else nullcontext() as filler:
        for number, text in enumerate(said):
            _claude(hooks, api.url, text)
            if fault == "killed":
                hooks.kill()
                hooks.allow_start()
            elif filler is not None and number == 0:
                hooks.wait_until_empty()
                fill(filler)
            elif fault == "damaged" and number == 4:
                hooks.wait_until_empty()
                hooks.kill()
                whole = _damage(file)
        if fault == "damaged":
            assert hooks.waiting
            hooks.kill()
            _restore(file, whole)
        if filler is not None:
            assert hooks.waiting
            filler.unlink()
        hooks.allow_start()
        hooks.run("session-start", {"session_id": "s"})
        hooks.wait_until_empty()
        assert sorted(hooks.stored()) == sorted(said)
        wait_until(lambda: "Utrecht" in hooks.run("prompt", {"session_id": "p", "prompt": ASKED}), "recall", LIMIT_S)
        _claude(hooks, api.url, ASKED)
        assert any("Utrecht" in text for text in api.texts_with(ASKED))


@contextmanager
def small_disk(hooks: Hooks) -> Iterator[Path]:
    """Mount a small file system for the memory, and yield the path of a file that may fill it."""
    if os.geteuid() != 0:
        pytest.skip("mounts a small file system")
    hooks.data.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(hooks.data)], check=False)
    if mounted.returncode:
        pytest.skip("cannot mount")
    try:
        yield hooks.data / "filler"
    finally:
        hooks.kill()
        subprocess.run(["umount", "-l", str(hooks.data)], check=False)


def fill(filler: Path) -> None:
    """Use all that is left on a disk."""
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))


def test_ten_turns_are_kept_on_a_full_disk(hooks: Hooks) -> None:
    with small_disk(hooks) as filler:
        hooks.turn("s0", SAID)
        hooks.wait_until_empty()
        fill(filler)
        said = [f"Shelf {number} holds books about rivers." + " river" * 20_000 for number in range(3)]
        for number, text in enumerate(said):
            hooks.turn(f"s{number + 1}", text)
        log = hooks.state / "hook.log"
        wait_until(
            lambda: log.exists() and "turns wait" in log.read_text(encoding="utf-8"), "a line in the log", LIMIT_S
        )
        assert hooks.waiting
        filler.unlink()
        hooks.wait_until_empty()
        assert hooks.stored() == [SAID, *said]
