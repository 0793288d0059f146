"""The memory as the official inspector uses it on the command line: one request a process, and so one login each."""

import json
import os
import subprocess
import sys
from typing import Any

LIMIT_S = 60


class RefusedError(Exception):
    """The inspector reports that the server refused it."""


class Inspector:
    """Runs the inspector, anew for each request.

    Args:
        command: Of the inspector.
        era: Of the protocol: ``legacy``, or ``auto`` for the newest that the server speaks.
        job: Says how to reach the server.
    """

    def __init__(self, command: list[str], era: str, job: dict[str, Any]) -> None:
        header = ["--header", f"Authorization: Bearer {job['token']}"] if job["token"] else []
        reached = ["--server-url", job["url"], *header] if "url" in job else job["command"]
        self._command = [*command, "--cli", *reached, "--transport", job["transport"], "--protocol-era", era]
        self.complaints: list[str] = []

    def ask(self, method: str, *options: str) -> dict[str, Any]:
        """Return the result of a request."""
        # Without --stored-auth-only it would open a browser to log in.
        flags = ["-q", "--format", "json", "--stored-auth-only"]
        done = subprocess.run(
            [*self._command, *flags, "--method", method, *options],
            capture_output=True,
            encoding="utf-8",
            timeout=LIMIT_S,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "NO_COLOR": "1"},
        )
        if not done.stdout:
            raise RefusedError(done.stderr)
        if done.stderr:
            self.complaints.append(done.stderr)
        result: dict[str, Any] = json.loads(done.stdout)["result"]
        return result

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the structured result of a tool."""
        options = ("--tool-name", tool, "--tool-args-json", json.dumps(arguments))
        structured: dict[str, Any] = self.ask("tools/call", *options)["structuredContent"]
        return structured


def use(inspector: Inspector, job: dict[str, Any]) -> dict[str, Any]:
    return {
        "protocol": None,  # it does not tell
        "tools": [tool["name"] for tool in inspector.ask("tools/list")["tools"]],
        "receipt": inspector.call("add_memory", user_input=job["say"], agent_response="Noted."),
        "found": inspector.call("retrieve_memory", query=job["ask"]),
        "resource": inspector.ask("resources/read", "--uri", job["read"])["contents"][0]["text"],
        "results": [inspector.call(tool, **arguments) for tool, arguments in job["calls"]],
        "complaints": inspector.complaints,
    }


def main(era: str, *rest: str) -> None:
    job = json.loads(rest[-1])
    try:
        answer = use(Inspector(list(rest[:-1]), era, job), job)
    except RefusedError as refused:
        answer = {"refusal": str(refused)}
    sys.stdout.write(json.dumps(answer) + "\n")


main(*sys.argv[1:])
