"""The view Import and export: downloads a memory as a file, and imports files of this and other programs."""

import gzip
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import IO, Any

from anyio import to_thread
from starlette.datastructures import UploadFile
from starlette.responses import Response, StreamingResponse

from memoryos_mcp.engine.imports import FileImport, Stage
from memoryos_mcp.errors import ArgumentError
from memoryos_mcp.server.web.visits import Visit, get, post
from memoryos_mcp.text.quoting import one_line
from memoryos_mcp.transfer.choosing import FORMATS, check_format
from memoryos_mcp.transfer.reports import report_lines
from memoryos_mcp.transfer.writing import writing

_CHUNK_BYTES = 256 * 1024
_NAME_CHARS = 100


async def exchange(visit: Visit) -> Response:
    """Show what can be exported, the form to upload a file, and the person's imports."""
    stats = await visit.engine.stats()
    limit = None if visit.machine is not None else visit.memories.settings.max_body_bytes
    return visit.page("exchange.html", stats=stats, formats=FORMATS, max_bytes=limit, **_imports(visit))


async def imports(visit: Visit) -> Response:
    """Show only the person's imports. A script repeats this request while an import is running."""
    return visit.page("imports.html", **_imports(visit)) if visit.is_part else visit.go("/exchange")


async def export(visit: Visit) -> Response:
    """Send the whole memory to the browser as a file."""
    # Written before it is sent, so that a slow reader does not hold up the store. The file has no name.
    file = await to_thread.run_sync(tempfile.TemporaryFile)
    try:
        await _write(visit, file)
        size = file.tell()
        file.seek(0)
    except BaseException:
        file.close()
        raise
    headers = {
        "content-disposition": f'attachment; filename="memory-{visit.memories.now():%Y-%m-%d}.jsonl.gz"',
        "content-length": str(size),
    }
    return StreamingResponse(_chunks(file), media_type="application/gzip", headers=headers)


async def upload(visit: Visit) -> Response:
    """Count the items in an uploaded file. Nothing is imported until the person confirms the import."""
    name = visit.given("format") or None
    check_format(name, argument="format")
    file = visit.form.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        raise ArgumentError(argument="file", problem="is missing; choose a file")
    user_id = visit.session.caller.user_id
    visit.imports.check_room(user_id)
    path = await to_thread.run_sync(_kept, file.file)
    visit.imports.begin(user_id, path, one_line(file.filename)[:_NAME_CHARS], name)
    return visit.go("/exchange#imports")


async def confirm(visit: Visit) -> Response:
    """Begin an import whose dry run the person has confirmed."""
    visit.imports.confirm(visit.session.caller.user_id, visit.given("import"))
    return visit.go("/exchange#imports")


async def discard(visit: Visit) -> Response:
    """Stop an import, or remove it from the list if it has ended."""
    found = visit.imports.discard(visit.session.caller.user_id, visit.given("import"))
    is_cut = found.stage is Stage.STORING
    note = f"{found.name} was not imported to its end. What was imported before is kept." if is_cut else ""
    return visit.go("/exchange#imports", note)


def _imports(visit: Visit) -> dict[str, Any]:
    found = visit.imports.of_user(visit.session.caller.user_id) if visit.may_write else []
    lines = {each.import_id: _lines(each) for each in found}
    return {"imports": found, "lines": lines, "is_running": any(each.is_running for each in found)}


def _lines(each: FileImport) -> list[str]:
    report = each.report or each.dry_run
    return [] if report is None else list(report_lines(report))


async def _write(visit: Visit, file: IO[bytes]) -> None:
    packed = gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0)

    def put(line: bytes) -> None:
        with writing("a temporary file"):
            packed.write(line)

    def finish() -> None:
        with writing("a temporary file"):
            packed.close()
            file.flush()

    await visit.engine.export(put)
    await to_thread.run_sync(finish)


async def _chunks(file: IO[bytes]) -> AsyncIterator[bytes]:
    try:
        while chunk := await to_thread.run_sync(partial(file.read, _CHUNK_BYTES)):
            yield chunk
    finally:
        file.close()


def _kept(uploaded: IO[bytes]) -> Path:
    """Copy an uploaded file to a temporary file that other users of this machine cannot read, and return the path."""
    descriptor, name = tempfile.mkstemp(prefix="memoryos-", suffix=".upload")
    path = Path(name)
    try:
        with writing("a temporary file"), os.fdopen(descriptor, "wb") as file:
            uploaded.seek(0)
            shutil.copyfileobj(uploaded, file, _CHUNK_BYTES)
    except BaseException:
        path.unlink()
        raise
    return path


ADDRESSES = (
    get("/exchange", exchange),
    get("/exchange/imports", imports),
    get("/exchange/export", export),
    post("/exchange", upload),
    post("/exchange/confirm", confirm),
    post("/exchange/discard", discard),
)
