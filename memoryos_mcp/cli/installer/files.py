"""Reads and replaces the configuration files of clients. A file is backed up and then replaced atomically."""

import os
import secrets
import stat
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from memoryos_mcp.errors import ClientFileError

MAX_BYTES = 8 * 1024 * 1024
BACKUP_MARK = ".memoryos-backup-"
_BOM = b"\xef\xbb\xbf"
_OTHER_BOMS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class ClientFile:
    """A client's configuration file and its content.

    ``target`` is the path after following symbolic links. ``content`` is None if the file does not exist.
    """

    path: Path
    target: Path
    content: bytes | None

    @property
    def text(self) -> str:
        """The decoded content without a byte order mark. It is empty if the file does not exist."""
        content = self.content or b""
        if content.startswith(_OTHER_BOMS):
            msg = f"{self.path} is in UTF-16, which the client cannot read; save the file in UTF-8"
            raise ClientFileError(msg)
        try:
            return content.removeprefix(_BOM).decode()
        except UnicodeDecodeError as error:
            msg = f"{self.path} is not valid UTF-8 (byte {error.start}); save the file in UTF-8"
            raise ClientFileError(msg) from error

    def encoded(self, text: str) -> bytes:
        """Return ``text`` encoded in UTF-8. The result has a byte order mark if the file has one."""
        try:
            return (_BOM if (self.content or b"").startswith(_BOM) else b"") + text.encode()
        except UnicodeEncodeError as error:
            msg = f"{self.path} was not changed: a path in the new entry is not valid Unicode; use another path"
            raise ClientFileError(msg) from error


def read(path: Path) -> ClientFile:
    """Read a file and return it. If the file does not exist, its content is None."""
    target = Path(os.path.realpath(path))
    try:
        status = target.stat()
        if not stat.S_ISREG(status.st_mode):
            kind = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
            msg = f"{path} is {kind}, so it cannot be the client's file; move or rename it"
            raise ClientFileError(msg)
        if status.st_size > MAX_BYTES:
            msg = (
                f"{path} was not read, because it is larger than {MAX_BYTES:,} bytes; make it smaller, or move it "
                "away if it is not the client's file"
            )
            raise ClientFileError(msg)
        return ClientFile(path, target, target.read_bytes())
    except FileNotFoundError:
        return ClientFile(path, target, None)
    except OSError as error:
        raise _file_error(path, "be read", error) from error


def backups(path: Path) -> list[Path]:
    """Return the paths of a file's backups, newest first."""
    target = Path(os.path.realpath(path))
    with suppress(OSError):
        found = [each for each in target.parent.iterdir() if each.name.startswith(target.name + BACKUP_MARK)]
        return sorted(found, reverse=True)
    return []


def write(file: ClientFile, content: bytes, now: datetime, *, is_private: bool) -> Path | None:
    """Create or replace a file atomically. Return the path of the backup, or None if the file did not exist.

    Permissions, owner and symbolic links do not change. With ``is_private``, only this account can read a new file.
    """
    target = file.target
    unfinished = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    backup: Path | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _check_unchanged(file)
        _check_writable(file)
        mode = 0o600 if is_private or file.content is not None else 0o666
        _write_new(unfinished, content, mode)
        if file.content is not None:
            _copy_permissions(target.stat(), unfinished)
            # Only this account may read the backup, which may contain keys of other servers.
            backup = target.with_name(f"{target.name}{BACKUP_MARK}{now:%Y%m%dT%H%M%S%f}")
            _write_new(backup, file.content, 0o600)
        _check_unchanged(file)
        unfinished.replace(target)
    except (OSError, ClientFileError) as error:
        with suppress(OSError):
            if backup is not None:
                backup.unlink(missing_ok=True)
        if isinstance(error, ClientFileError):
            raise
        raise _file_error(file.path, "be written", error) from error
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
    return backup


def _write_new(path: Path, content: bytes, mode: int) -> None:
    flags = (
        os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
    )  # otherwise Windows would change line ends
    with os.fdopen(os.open(path, flags, mode), "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def _check_unchanged(file: ClientFile) -> None:
    if read(file.path) != file:
        msg = (
            f"{file.path} was changed by another program in the meantime, so nothing was written; run the command again"
        )
        raise ClientFileError(msg)


def _check_writable(file: ClientFile) -> None:
    """Raise `ClientFileError` if a file or its folder is read-only.

    The check is needed because replacing a file can succeed even if the file is read-only.
    """
    for path, what in ((file.target, "is"), (file.target.parent, "is in a folder that is")):
        with suppress(FileNotFoundError):
            if not path.stat().st_mode & 0o222 or not os.access(path, os.W_OK):
                msg = f"{file.path} {what} read-only; make the file and its folder writable, or edit the file by hand"
                raise ClientFileError(msg)


def _copy_permissions(status: os.stat_result, path: Path) -> None:
    """Set the permissions and the owner of the file at ``path`` to those in ``status``."""
    if hasattr(os, "chown") and (status.st_uid, status.st_gid) != (path.stat().st_uid, path.stat().st_gid):
        os.chown(path, status.st_uid, status.st_gid)
    path.chmod(stat.S_IMODE(status.st_mode))


def _file_error(path: Path, what: str, error: OSError) -> ClientFileError:
    reason = error.strerror or type(error).__name__
    fix = "close the client and run the command again" if os.name == "nt" else "check its permissions"
    return ClientFileError(f"{path} cannot {what} ({reason}); {fix}")
