"""Reads a Dockerfile: its stages, their steps, and the steps that an image has from all its stages."""

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
# Other instructions are not supported here, and a test would not notice that they are missing.
KNOWN = frozenset(
    {"ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "HEALTHCHECK", "LABEL", "RUN", "USER", "VOLUME", "WORKDIR"}
)


@dataclass(frozen=True, slots=True)
class Step:
    """An instruction, such as ``RUN`` or ``COPY``, and its arguments."""

    name: str
    rest: str

    def words(self) -> list[str]:
        """Return the arguments of the JSON form."""
        loaded: list[str] = json.loads(self.rest)
        return loaded

    def pairs(self) -> dict[str, str]:
        """Return the arguments of the form ``name=value``."""
        return dict(part.split("=", 1) for part in shlex.split(self.rest))


@dataclass(frozen=True, slots=True)
class Stage:
    """The steps from one ``FROM`` to the next. The base is an image or an earlier stage."""

    name: str
    base: str
    steps: tuple[Step, ...]


def stages(text: str) -> dict[str, Stage]:
    """Return a Dockerfile's stages by name, in their order."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    found: dict[str, Stage] = {}
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        name, _, rest = line.strip().partition(" ")
        if name == "FROM":
            base, called = re.fullmatch(r"(\S+) AS (\S+)", rest.strip()).groups()  # type: ignore[union-attr]
            found[called] = Stage(called, base, ())
        elif name:
            assert name in KNOWN, line
            last = next(reversed(found.values()))
            found[last.name] = Stage(last.name, last.base, (*last.steps, Step(name, rest.strip())))
    return found


def steps_of(name: str) -> list[Step]:
    """Return the steps of one of our images, beginning with those of the stages on which it builds."""
    known = stages((ROOT / "Dockerfile").read_text(encoding="utf-8"))
    chain = list[Step]()
    while name in known:
        chain[:0] = known[name].steps
        name = known[name].base
    return chain


def only_step(image: str, name: str) -> Step:
    """Return an image's only step of a kind."""
    (step,) = [step for step in steps_of(image) if step.name == name]
    return step


def health_check() -> list[str]:
    """Return the command of the HTTP image's health check."""
    command: list[str] = json.loads(only_step("http", "HEALTHCHECK").rest.partition(" CMD ")[2])
    return command
