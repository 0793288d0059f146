"""Images and containers without Docker: the steps of a Dockerfile are carried out in a folder that becomes the root.

As with Docker, Linux namespaces isolate a container: it sees its folder as ``/``, is process 1, and has the recipe's
user. Except during a build, its network has only the loopback address. The base image consists of this machine's system
programs, read-only, and of the Python that runs the tests, at ``/usr/local``. All this needs root.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.recipes import Stage, Step, stages

INIT = Path(__file__).with_name("container_init.py")
BUILD_LIMIT_S = 600
LIMIT_S = 60
_PATH = "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
_CHANGES = frozenset({"COPY", "RUN", "WORKDIR"})
_TEMPORARY = "/tmp"  # noqa: S108 - of the container
_SYSTEM = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32")
_SETTINGS = ("login.defs", "nsswitch.conf", "resolv.conf", "hosts", "pip.conf")
_TREES = ("alternatives", "ca-certificates", "ld.so.conf.d", "pki", "ssl")
# This machine's settings for package indexes. Docker's service has its own.
_NETWORK = re.compile(r"PIP_.*|SSL_CERT_.*|.*_PROXY", re.IGNORECASE)


@dataclass
class Image:
    """The result of a stage.

    Attributes:
        root: The folder that becomes ``/``.
        arguments: Build arguments with their defaults. Only the stage's own steps see them.
    """

    root: Path
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": _PATH})
    arguments: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    volumes: list[str] = field(default_factory=list)
    user: str = "0:0"
    folder: str = "/"
    entry_point: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    health_check: list[str] | None = None

    def inside(self, path: str) -> Path:
        """Return the path on this machine of a path in the image."""
        return self.root / os.path.normpath(Path(self.folder) / path).lstrip("/")

    def run(self, command: Sequence[str], mounts: Sequence[Sequence[str]] = (), *, is_build: bool = False) -> list[str]:
        """Return the command line that runs a command in a new container of this image."""
        environment = self.environment
        if is_build:
            given = {name: value for name, value in os.environ.items() if _NETWORK.fullmatch(name)}
            environment = given | self.arguments | environment
        job = self._job(command, environment, [*_system_mounts(self.root), *mounts], wants_loopback=not is_build)
        spaces = ["--mount", "--pid", "--fork", "--kill-child", *([] if is_build else ["--net"])]
        return ["unshare", *spaces, sys.executable, "-I", str(INIT), job]

    def run_beside(self, process: int, command: Sequence[str]) -> list[str]:
        """Return the command line that runs a command in the container of a process, as ``docker exec`` does."""
        job = self._job(command, self.environment, [], wants_loopback=False)
        entered = ["nsenter", "--target", str(process), "--mount", "--pid", "--net"]
        return [*entered, sys.executable, "-I", str(INIT), job]

    def _job(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        mounts: Sequence[Sequence[str]],
        *,
        wants_loopback: bool,
    ) -> str:
        return json.dumps(
            {
                "root": str(self.root),
                "mounts": mounts,
                "wants_loopback": wants_loopback,
                "user": self.user,
                "folder": self.folder,
                "environment": environment,
                "command": command,
            }
        )


def are_possible() -> bool:
    """Return whether this machine allows containers."""
    tried = ["unshare", "--mount", "--pid", "--net", "--fork", "true"]
    return (
        os.geteuid() == 0 and shutil.which(tried[0]) is not None and subprocess.run(tried, check=False).returncode == 0
    )


def built(recipe: str, context: Path, folder: Path) -> dict[str, Image]:
    """Carry out every stage of a Dockerfile, and return each stage's result.

    Args:
        recipe: The Dockerfile's text.
        context: The folder from which files are copied.
        folder: An empty folder for the roots of all stages.
    """
    images: dict[str, Image] = {}
    for stage in stages(recipe).values():
        images[stage.name] = image = _begun(stage, images, folder / stage.name)
        for step in stage.steps:
            _carry_out(step, image, context, images)
    return images


def container_process(started: subprocess.Popen[bytes]) -> int:
    """Return the process id on this machine of a container's process 1."""
    (first,) = psutil.Process(started.pid).children()
    return int(first.pid)


def read_only_mounts(image: Image, volume: Path) -> list[list[str]]:
    """Return the mounts of a container with a read-only image, like ``read_only`` and ``tmpfs`` of Compose."""
    root = str(image.root)
    return [
        ["-o", "remount,bind,ro", root],
        ["-t", "tmpfs", "tmpfs", str(image.inside(_TEMPORARY))],
        *volume_mounts(image, volume),
    ]


def volume_mounts(image: Image, volume: Path) -> list[list[str]]:
    """Return the mount of a named volume, which is filled with the image's files at its place."""
    (place,) = image.volumes
    if not volume.exists():
        subprocess.run(["cp", "-a", image.inside(place), volume], check=True)
    return [["--bind", str(volume), str(image.inside(place))]]


def _begun(stage: Stage, images: Mapping[str, Image], root: Path) -> Image:
    if stage.base not in images:
        _lay_out(root)
        image = Image(root)
        # With this, the base image's Python finds its library, whatever path it was built for.
        subprocess.run(image.run(["/sbin/ldconfig"], is_build=True), check=True, timeout=LIMIT_S)
        return image
    base = images[stage.base]
    if any(step.name in _CHANGES for step in stage.steps):
        subprocess.run(["cp", "-a", base.root, root], check=True)
    else:
        root = base.root
    return Image(
        root,
        environment=dict(base.environment),
        labels=dict(base.labels),
        volumes=list(base.volumes),
        user=base.user,
        folder=base.folder,
        entry_point=base.entry_point,
        command=base.command,
        health_check=base.health_check,
    )


def _lay_out(root: Path) -> None:
    """Make the folder of a base image, with mount points for this machine's system and a few files."""
    for name in ("dev", "proc", "tmp", "etc", "opt", "root", "var"):
        (root / name).mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    for name in _SYSTEM:
        here = Path("/", name)
        if here.is_symlink():
            (root / name).symlink_to(here.readlink())
        elif here.is_dir():
            (root / name).mkdir()
    for name in _SETTINGS:
        if Path("/etc", name).is_file():
            shutil.copyfile(Path("/etc", name), root / "etc" / name)
    for name in _TREES:
        if Path("/etc", name).is_dir():
            (root / "etc" / name).mkdir()
    users = {"passwd": "root:x:0:0:root:/root:/bin/sh\n", "group": "root:x:0:\n", "shadow": "root:*:::::::\n"}
    libraries = {"ld.so.conf": "/usr/local/lib\ninclude /etc/ld.so.conf.d/*.conf\n"}
    for name, text in (users | libraries).items():
        (root / "etc" / name).write_text(text, encoding="ascii")


def _system_mounts(root: Path) -> list[list[str]]:
    shared = [name for name in _SYSTEM if (root / name).is_dir() and not (root / name).is_symlink()]
    shared += [f"etc/{name}" for name in _TREES if (root / "etc" / name).is_dir()]
    binds = [(f"/{name}", str(root / name)) for name in shared]
    if Path(sys.base_prefix) != Path("/usr"):
        binds.append((sys.base_prefix, str(root / "usr" / "local")))
    mounts = [["--make-rprivate", "/"], ["--bind", str(root), str(root)]]
    for source, place in binds:
        mounts += [["--bind", source, place], ["-o", "remount,bind,ro", place]]
    return [*mounts, ["--rbind", "/dev", str(root / "dev")], ["-t", "proc", "proc", str(root / "proc")]]


def _carry_out(step: Step, image: Image, context: Path, images: Mapping[str, Image]) -> None:
    match step.name:
        case "RUN":
            done = subprocess.run(
                image.run(["/bin/sh", "-c", step.rest], is_build=True),
                capture_output=True,
                encoding="utf-8",
                timeout=BUILD_LIMIT_S,
                check=False,
            )
            assert done.returncode == 0, f"{step.rest}\n{done.stdout}{done.stderr}"
        case "COPY":
            _copy(step.rest.split(), image, context, images)
        case "WORKDIR":
            image.folder = str(Path(image.folder) / step.rest)
            image.inside(".").mkdir(parents=True, exist_ok=True)
        case _:
            _note(step, image)


def _copy(words: list[str], image: Image, context: Path, images: Mapping[str, Image]) -> None:
    source: Path = context
    copied: Callable[..., object] = shutil.copy2
    # These are in .dockerignore.
    ignored: Callable[[str, list[str]], set[str]] | None = shutil.ignore_patterns("__pycache__")
    if words[0].startswith("--from="):
        # Later steps do not change the files of an earlier stage.
        source, copied, ignored = images[words.pop(0).removeprefix("--from=")].root, os.link, None
    *names, target = words
    place = image.inside(target)
    for name in names:
        found = source / name.lstrip("/")
        if found.is_dir():  # the folder's content is copied, not the folder itself
            shutil.copytree(found, place, symlinks=True, ignore=ignored, copy_function=copied)
        else:
            copied(found, place / found.name if target.endswith("/") else place)


def _note(step: Step, image: Image) -> None:
    """Apply a step that only concerns later containers."""
    match step.name:
        case "ARG":
            image.arguments |= step.pairs()
        case "ENV":
            for name, value in step.pairs().items():
                image.environment[name] = re.sub(r"\$(\w+)", lambda found: image.environment[found[1]], value)
        case "LABEL":
            image.labels |= step.pairs()
        case "VOLUME":
            image.volumes.append(step.rest)
        case "USER":
            image.user = step.rest
        case "ENTRYPOINT":
            image.entry_point, image.command = step.words(), []
        case "CMD":
            image.command = step.words()
        case "HEALTHCHECK":
            image.health_check = json.loads(step.rest.partition(" CMD ")[2])
        case other:
            assert other == "EXPOSE", step
