"""Programs with an open memory end cleanly at any moment.

``MEMORYOS_ENDS`` sets how often each is started, 5 times by default.
"""

import asyncio
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers import clean_environment

pytestmark = pytest.mark.campaign

ENDS = int(os.environ.get("MEMORYOS_ENDS", "5"))
LONGEST_DELAY_S = 0.8
LIMIT_S = 60

_SYNC = """
import sys, time
from memoryos_mcp import Memoryos

folder, delay_s = sys.argv[1], float(sys.argv[2])
"""
_ASYNC = """
import asyncio, sys
from memoryos_mcp import MemoryEngine

async def main():
    async with MemoryEngine.open("ada", data_storage_path=sys.argv[1]) as engine:
        await asyncio.sleep(float(sys.argv[2]))
"""
PROGRAMS = {
    "with Memoryos": f"""{_SYNC}
with Memoryos("ada", data_storage_path=folder):
    time.sleep(delay_s)
""",
    "Memoryos left open": f"""{_SYNC}
left = Memoryos("ada", data_storage_path=folder)
time.sleep(delay_s)
""",
    "Memoryos asked in another thread": f"""{_SYNC}
import threading
memory = Memoryos("ada", data_storage_path=folder)
memory.add_memory("I like tea.", "Noted.")

def ask():
    try:
        while True:
            memory.add_memory("I like rowing.", "Noted.")
    except Exception as error:
        assert "closed" in str(error), error

threading.Thread(target=ask, daemon=True).start()
time.sleep(delay_s)
memory.close()
""",
    "sys.exit inside with": f"""{_SYNC}
with Memoryos("ada", data_storage_path=folder):
    sys.exit(0)
""",
    "MemoryEngine.open": f"{_ASYNC}\nasyncio.run(main())\n",
    "MemoryEngine.open cancelled": f"""{_ASYNC}
async def impatient():
    try:
        async with asyncio.timeout(float(sys.argv[2])):
            await main()
    except TimeoutError:
        pass

asyncio.run(impatient())
""",
}


def ended(program: str, folder: Path, delay_s: float) -> "subprocess.CompletedProcess[bytes]":
    command = [sys.executable, "-c", program, str(folder), str(delay_s)]
    return subprocess.run(command, env=clean_environment(), capture_output=True, timeout=LIMIT_S, check=False)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_ends_early_ends_cleanly(tmp_path: Path, name: str) -> None:
    dice = random.Random(name)  # noqa: S311 - no secret
    for number in range(ENDS):
        delay_s = dice.uniform(0, LONGEST_DELAY_S) if number % 2 else 0.0
        process = ended(PROGRAMS[name], tmp_path / str(number), delay_s)
        assert (process.returncode, process.stderr.decode()) == (0, ""), f"after {delay_s:.3f} s"


WARNINGS = {
    "none": [],
    "as errors": ["-W", "error"],
    "as errors in development mode": ["-X", "dev", "-W", "error"],
}
LEFT_OPEN = f"""{_SYNC}
memory = Memoryos("ada", data_storage_path=folder)
memory.add_memory("I repair old radios.", "Which one is on your bench?")
print(memory.retrieve("radios").text)
"""


@pytest.mark.parametrize("warnings", WARNINGS)
def test_warnings_as_errors_find_nothing_at_the_end(tmp_path: Path, warnings: str) -> None:
    for number, last in enumerate(("", "memory.force_mid_term_analysis()", "del memory", "memory.close()")):
        command = [sys.executable, *WARNINGS[warnings], "-c", LEFT_OPEN + last, str(tmp_path / str(number)), "0"]
        done = subprocess.run(
            command, env=clean_environment(), capture_output=True, encoding="utf-8", timeout=LIMIT_S, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), last
        assert "I repair old radios." in done.stdout
        assert not list(tmp_path.rglob("*-wal"))


def test_an_exception_is_the_only_thing_shown(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-W",
        "error",
        "-c",
        f"{LEFT_OPEN}\nraise ValueError('of the program')",
        str(tmp_path),
        "0",
    ]
    done = subprocess.run(
        command, env=clean_environment(), capture_output=True, encoding="utf-8", timeout=LIMIT_S, check=False
    )
    assert done.returncode == 1
    assert [line for line in done.stderr.splitlines() if not line.startswith(" ")] == [
        "Traceback (most recent call last):",
        "ValueError: of the program",
    ]
    assert not list(tmp_path.rglob("*-wal"))


async def test_ctrl_c_closes_the_memory_of_a_program(tmp_path: Path) -> None:
    dice = random.Random(7)  # noqa: S311 - no secret
    for number in range(ENDS):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", PROGRAMS["with Memoryos"], str(tmp_path / str(number)), "30",
            env=clean_environment(), stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        async with asyncio.timeout(LIMIT_S):
            while not (tmp_path / str(number)).exists():  # noqa: ASYNC110 - the folder is another process's
                await asyncio.sleep(0.01)
            await asyncio.sleep(dice.uniform(0, LONGEST_DELAY_S))
            process.send_signal(signal.SIGINT)
            _, told = await process.communicate()
        # If C code imports a module at that moment, the interpreter loses the interrupt and exits with 1.
        assert process.returncode in (1, 130, -signal.SIGINT), told.decode()
        assert b"KeyboardInterrupt" in told
        assert b"terminate called" not in told
