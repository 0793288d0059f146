"""A Dockerfile as it is read: its stages, their steps, and what an image is told by all the stages under it."""

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
# More than these are not read here: a step that is carried out by nobody would prove nothing.
KNOWN = frozenset(
    {"ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "HEALTHCHECK", "LABEL", "RUN", "USER", "VOLUME", "WORKDIR"}
)


@dataclass(frozen=True, slots=True)
class Step:
    """An instruction, as ``RUN`` or ``COPY``, and what follows it."""

    name: str
    rest: str

    def words(self) -> list[str]:
        """Return a list in JSON's form."""
        loaded: list[str] = json.loads(self.rest)
        return loaded

    def pairs(self) -> dict[str, str]:
        """Return names and values, which have a sign of equality between them."""
        return dict(part.split("=", 1) for part in shlex.split(self.rest))


@dataclass(frozen=True, slots=True)
class Stage:
    """What stands from one ``FROM`` to the next; its base is an image or an earlier stage."""

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
    """Return the steps of our image of that name, those of the stages that it builds upon first."""
    known = stages((ROOT / "Dockerfile").read_text(encoding="utf-8"))
    chain = list[Step]()
    while name in known:
        chain[:0] = known[name].steps
        name = known[name].base
    return chain


def only_step(image: str, name: str) -> Step:
    """Return an image's one step of a kind."""
    (step,) = [step for step in steps_of(image) if step.name == name]
    return step


def health_check() -> list[str]:
    """Return the command by which the image for HTTP is asked whether it is well."""
    command: list[str] = json.loads(only_step("http", "HEALTHCHECK").rest.partition(" CMD ")[2])
    return command
