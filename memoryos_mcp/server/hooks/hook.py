"""The command ``memoryos-mcp hook``: read an event as JSON from stdin, reply, and always end with exit code 0.

Only parts of the standard library are imported, because the client waits. The daemon does the slow work. If no daemon
replies, memories are found by keywords only.
"""

import json
import os
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress

from memoryos_mcp import __version__
from memoryos_mcp.server.hooks import dialects, spool

# Seconds that a client waits at most for recall.
WAIT_S = 1.0
# Seconds after which another daemon is started if the last one did not answer.
START_AGAIN_S = 10.0
ADDRESS, STARTED, MEMORY = "socket", "started", "memory"
REPLY_BYTES = 1_000_000


class Call:
    """The parsed command line of a hook. ``folder`` is the private folder that hooks with the same settings share."""

    def __init__(self, arguments: Sequence[str]) -> None:
        rest = list(arguments)
        self.event = rest.pop(0) if rest else ""
        self.client, self.wait_s = "claude-code", WAIT_S
        self.settings: list[str] = []
        while rest:
            name, _, value = rest.pop(0).partition("=")
            if not value and rest:
                value = rest.pop(0)
            if name == "--client":
                self.client = value
            elif name == "--wait":
                self.wait_s = float(value)
            else:
                self.settings += [name, value]
        self.folder = folder_of(self.settings)

    def check(self) -> None:
        """Raise `ValueError` or `OSError` if the command line or the config file is not valid."""
        if self.event not in ("session-start", "prompt", "stop") or self.client not in dialects.EVENTS:
            msg = "the event or the client is unknown; run memoryos-mcp install --client NAME --hooks again"
            raise ValueError(msg)
        if (config := config_of(self.settings)) is not None:
            with open(config, "rb") as file:
                json.loads(file.read().removeprefix(b"\xef\xbb\xbf"))


def config_of(settings: Sequence[str]) -> str | None:
    """Return the absolute path of the config file, or None if no config file is used."""
    chosen = dict(zip(settings[::2], settings[1::2], strict=False)).get("--config")
    named = chosen or os.environ.get("MEMORYOS_CONFIG")
    return os.path.abspath(os.path.expanduser(named)) if named else None


def folder_of(settings: Sequence[str]) -> str:
    """Return the private folder that the daemon and all hooks with these settings share."""
    ours = sorted((name, value) for name, value in os.environ.items() if name.startswith("MEMORYOS_"))
    given = dict(zip(settings[::2], settings[1::2], strict=False))
    if "--config" in given and (config := config_of(settings)) is not None:
        given["--config"] = config
    name = dialects.digest(json.dumps([sorted(given.items()), ours]))
    return os.path.join(spool.root_folder(os.environ), name)


def stamp(settings: Sequence[str]) -> str:
    """Return a string that changes when the config file or the version of this program changes."""
    config = config_of(settings)
    if config is None:
        return __version__
    status = os.stat(config)
    return f"{__version__} {status.st_mtime_ns} {status.st_size}"


def main(arguments: Sequence[str]) -> None:
    """Handle one event and end the process with exit code 0."""
    folder = ""
    try:
        call = Call(arguments)
        folder = call.folder
        call.check()
        spool.make_private(folder)
        given = json.loads(sys.stdin.buffer.read())
        if answer := handle(call, given):
            sys.stdout.buffer.write(answer.encode())
            sys.stdout.buffer.flush()
    except BaseException as error:  # noqa: BLE001 - a hook never fails in front of its client
        event = arguments[0] if arguments else "hook"
        spool.log(folder or spool.root_folder(os.environ), f"{event[:20]}: nothing done: {type(error).__name__}")
    os._exit(0)


def handle(call: Call, given: dict[str, object]) -> str:
    """Handle an event, and return the reply to the client. An empty string means no reply."""
    if given.get("agent_id"):  # the turn of a subagent is not the user's
        return ""
    if call.event == "stop":
        _keep_exchange(call, given)
        return ""
    request: dict[str, object] = {"op": "head"}
    if call.event == "prompt":
        prompt = dialects.prompt_of(given)
        if not prompt:
            return ""
        _note_prompt(call, given, prompt)
        request = {"op": "recall", "prompt": prompt, "session": dialects.session_of(given)}
        if call.client in dialects.WITHOUT_RECALL:
            return ""
    reply = _asked(call, {**request, "cwd": given.get("cwd")})
    context = str(reply.get("text") or "")
    if not reply and call.event == "prompt":
        context = _found_by_words(call, given, prompt)
    return dialects.reply(call.client, call.event, context) if context else ""


def _prompt_file(call: Call, given: dict[str, object]) -> str:
    return os.path.join(call.folder, f"{dialects.digest(call.client + dialects.session_of(given))}.prompt")


def _note_prompt(call: Call, given: dict[str, object], prompt: str) -> None:
    """Save the prompt for the end of the turn. A further prompt in the same turn is appended to the saved prompt."""
    path = _prompt_file(call, given)
    before = spool.read(path)
    is_open = not before.get("is_done", True)
    turn = before["turn"] if is_open else dialects.turn_of(given) or os.urandom(8).hex()
    text = f"{before['prompt']}\n\n{prompt}" if is_open else prompt
    try:
        spool.write(path, {"turn": turn, "prompt": text, "is_done": False, "at": time.time()})
    except OSError as error:
        spool.log(call.folder, f"prompt: not noted: {type(error).__name__}")


def _keep_exchange(call: Call, given: dict[str, object]) -> None:
    """Save the finished turn in the spool, and wake the daemon."""
    path = _prompt_file(call, given)
    noted = spool.read(path)
    if noted.get("is_done"):
        return
    prompt, turn = str(noted.get("prompt") or dialects.prompt_of(given)), str(noted.get("turn") or "")
    answer = dialects.answer_of(given)
    if not turn:
        said, _, message = dialects.last_exchange(given)
        prompt, turn = prompt or said, dialects.turn_of(given) or message or dialects.digest(prompt + answer)
    if not prompt and not answer:
        return
    session = dialects.session_of(given)
    entry: dict[str, object] = {
        "key": dialects.key_of(call.client, session, turn),
        "user": prompt,
        "agent": answer,
        "at": noted.get("at") or time.time(),
        "client": call.client,
        "session": session,
        "cwd": given.get("cwd"),
    }
    try:
        spool.put(call.folder, entry)
        spool.write(path, {"turn": turn, "is_done": True})
    except OSError as error:  # the disk is full, perhaps the memory is on another one
        spool.log(call.folder, f"stop: not spooled: {type(error).__name__}")
        _asked(call, {"op": "store", "turn": entry})
        return
    _asked(call, {"op": "wake"}, is_awaited=False)


def _found_by_words(call: Call, given: dict[str, object], prompt: str) -> str:
    """Search the memory's file for the words of a prompt, without the daemon. Return the found pages as text."""
    named = spool.read(os.path.join(call.folder, MEMORY))
    file = named.get("file")
    if not isinstance(file, str) or named.get("stamp") != stamp(call.settings) or not os.path.exists(file):
        return ""
    from memoryos_mcp.server.hooks.relevance import text_by_words

    return text_by_words(file, prompt, dialects.session_of(given))


def _asked(call: Call, request: dict[str, object], *, is_awaited: bool = True) -> dict[str, object]:
    """Send a request to the daemon. Return the reply if ``is_awaited`` is True, else an empty dictionary.

    If the daemon does not reply in time, return an empty dictionary and start a daemon for later requests.
    """
    settings_stamp = stamp(call.settings)
    with suppress(OSError, ValueError), connected(call.folder, call.wait_s) as line:
        line.sendall(json.dumps({**request, "stamp": settings_stamp}).encode() + b"\n")
        if not is_awaited:
            return {}
        content = b""
        until = time.monotonic() + call.wait_s
        while not content.endswith(b"\n") and time.monotonic() < until:
            part = line.recv(REPLY_BYTES)
            if not part:
                break
            content += part
        reply = json.loads(content)
        if not reply.get("is_stale"):
            return dict(reply)
    _start_daemon(call)
    return {}


def connected(folder: str, wait_s: float) -> socket.socket:
    """Return a connection to the daemon of the private folder ``folder``. Raise `OSError` if no daemon is running."""
    if os.name == "nt":
        address = spool.read(os.path.join(folder, ADDRESS))
        if not {"port", "token"} <= address.keys():
            msg = "no daemon is running"
            raise ConnectionRefusedError(msg)
        line = socket.create_connection(("127.0.0.1", int(str(address["port"]))), wait_s)
        line.sendall(str(address["token"]).encode() + b"\n")
        return line
    line = socket.socket(socket.AF_UNIX)  # type: ignore[attr-defined, unused-ignore]
    line.settimeout(wait_s)
    try:
        os.chdir(folder)  # the path of a socket has a limit of about 100 bytes
        line.connect(ADDRESS)
    except OSError:
        line.close()
        raise
    return line


def _start_daemon(call: Call) -> None:
    """Start a daemon that outlives this process, unless one was started in the last `START_AGAIN_S` seconds."""
    mark = os.path.join(call.folder, STARTED)
    with suppress(OSError):
        if time.time() - os.stat(mark).st_mtime < START_AGAIN_S:
            return
    with suppress(OSError):
        os.close(os.open(mark, os.O_CREAT | os.O_WRONLY, 0o600))
        os.utime(mark)
    line = [sys.executable, "-P", "-m", "memoryos_mcp", "daemon", *call.settings]
    if os.name == "nt":
        import subprocess

        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        flags = subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP  # type: ignore[attr-defined, unused-ignore]
        subprocess.Popen(line, creationflags=flags, **quiet)  # type: ignore[call-overload]  # noqa: S603
        return
    null = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    os.posix_spawn(sys.executable, line, os.environ, file_actions=null, setsid=True)
