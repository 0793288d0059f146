"""The vector index ``chroma``: keeps vectors in a Chroma folder, or on a Chroma server if ``chroma_url`` is set.

In the folder or on the server, each user has a separate database with one collection for each vector space. Chroma
stores each vector with the ``seq`` of its page, but stores no texts and no user ids. Chroma's own embedding models are
not used.

The first process that uses a Chroma folder locks it. Other processes keep vectors in RAM.

Chroma does not erase deleted vectors from its files. In a folder, `ChromaIndex.settle` therefore copies each collection
from which pages were removed, and deletes the files of the old collection. On a server, the administrator has to do
this.
"""

import asyncio
import hashlib
import logging
import secrets
import shutil
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeAlias, TypeVar

import anyio.to_thread
import numpy as np

from memoryos_mcp.config import Settings
from memoryos_mcp.errors import StorageError
from memoryos_mcp.model.segments import Vector
from memoryos_mcp.retrieval.index.chroma_server import ChromaServer
from memoryos_mcp.retrieval.index.faiss_index import FaissIndex
from memoryos_mcp.retrieval.index.interface import IndexRequest, VectorIndex, parts_of
from memoryos_mcp.storage.values import PageVectors, WindowHits

# Chroma's own client in a folder, or `chroma_server`.
Database: TypeAlias = Any
Collection: TypeAlias = Any

logger = logging.getLogger(__name__)

FOLDER = "chroma"
BUSY_S = 30.0
# Number of windows that are sent at once, so that searches wait for a fraction of a second only.
WINDOWS_AT_ONCE = 500
# A collection that has no mark after this time belongs to a process that has ended.
ABANDONED_S = 3600.0
# With these values, a search finds nearly all of the nearest windows.
_HNSW = {"space": "ip", "ef_construction": 200, "ef_search": 400, "max_neighbors": 32}

_Result = TypeVar("_Result")


class ChromaIndexes:
    """Creates the indexes of all users. The connection to Chroma is opened when the first index is used."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.folder = settings.data_storage_path / FOLDER if settings.chroma_url is None else None
        self._lock_file: IO[bytes] | None = None
        self._connecting = threading.Lock()
        self._server: ChromaServer | None = None
        # In a folder, by the names of databases.
        self._clients: dict[str, Database] = {}

    def __call__(self, request: IndexRequest) -> VectorIndex:
        """Return an index for the request. The index is in Chroma, or in RAM if another process uses the folder."""
        if self.folder is None or self._has_lock(self.folder):
            return ChromaIndex(request, self)
        logger.info("another process uses the Chroma folder %s, so this process keeps vectors in RAM", self.folder)
        return FaissIndex(request.dimension)

    def check(self) -> None:
        """Check that the Chroma server answers. This call blocks. A folder is not checked, because it may be in use.

        Raises:
            StorageError: The server does not answer.
        """
        if self._settings.chroma_url is not None:
            with closing(ChromaServer(self._settings.chroma_url)) as server, self.translated():
                server.check()

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Convert errors of Chroma in the ``with`` block to `StorageError`."""
        try:
            yield
        except Exception as error:  # Chroma's errors have no common class
            problem = (str(error).strip() or type(error).__name__).splitlines()[0]
            msg = (
                f"{self.place} failed ({problem}); if this happens again, stop all servers and delete the folder. "
                "The vectors are then copied from the memory again"
            )
            if self.folder is None:
                msg = f"{self.place} failed ({problem}); check that it runs, and correct chroma_url if necessary"
            raise StorageError(msg) from error

    def close(self) -> None:
        """Close the connection and unlock the folder. The indexes cannot be used afterwards."""
        with self._connecting:
            for client in (*self._clients.values(), *filter(None, (self._server, self._lock_file))):
                client.close()
            self._clients.clear()
            self._server = self._lock_file = None

    @property
    def place(self) -> str:
        """The folder or server of Chroma, as text for messages."""
        return f"the Chroma {'server' if self.folder is None else 'folder'} {self.folder or self._settings.chroma_url}"

    def database(self, user_id: str) -> Database:
        """Return the database of a user, and create it if it is missing. This call blocks."""
        name = f"memoryos-{_digest(self._owner(), user_id)}"
        with self._connecting:
            if self.folder is not None:
                return self._database_in(self.folder, name)
            if self._server is None:
                self._server = ChromaServer(self._settings.chroma_url or "")
        return self._server.database(name)

    def _database_in(self, folder: Path, name: str) -> Database:
        if name in self._clients:
            return self._clients[name]
        import chromadb
        from chromadb.config import Settings as ChromaSettings
        from chromadb.errors import NotFoundError

        quiet = ChromaSettings(anonymized_telemetry=False, _env_file=None)
        if not self._clients:
            self._clients[""] = chromadb.PersistentClient(folder, settings=quiet)
        admin = chromadb.AdminClient(self._clients[""].get_settings())
        try:
            admin.get_database(name)
        except NotFoundError:
            admin.create_database(name)
        self._clients[name] = chromadb.PersistentClient(folder, settings=quiet, database=name)
        return self._clients[name]

    def _owner(self) -> str:
        """Return an id of this installation, because several installations can share one Chroma server."""
        if self.folder is not None:
            return ""
        if self._settings.database_url is not None:
            return self._settings.memories_place
        path = self._settings.data_storage_path / "chroma-id"
        with suppress(FileExistsError), path.open("x", encoding="ascii") as file:
            file.write(secrets.token_hex(16))
        return path.read_text(encoding="ascii")

    def _has_lock(self, folder: Path) -> bool:
        if self._lock_file is None:
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._lock_file = _locked(folder / "lock")
            except OSError as error:
                logger.debug("%s cannot be locked, so this process keeps vectors in RAM: %s", folder, error)
        return self._lock_file is not None


class ChromaIndex:
    """A vector index in Chroma. Implements `VectorIndex`.

    The metadata of a collection contains ``has_removed`` if vectors were removed from the collection. After the
    collection has been filled, the metadata also contains ``mark``, the text that `set_mark` stored.
    """

    def __init__(self, request: IndexRequest, indexes: ChromaIndexes) -> None:
        self._request = request
        self._indexes = indexes
        self._prefix = _prefix(request.space)
        self._collection: Collection | None = None
        # The copy that `settle` makes, which gets the same changes.
        self._copy: Collection | None = None
        self._opening = asyncio.Lock()
        self._writing = asyncio.Lock()
        self._settling = asyncio.Lock()

    @property
    def is_settled(self) -> bool:
        """Whether the index needs no maintenance at present; see `VectorIndex.is_settled`."""
        folder, collection = self._indexes.folder, self._collection
        return folder is None or not (
            (collection is not None and _metadata(collection).get("has_removed")) or _untidy(folder).exists()
        )

    async def replace(self, pages: Sequence[int], vectors: PageVectors) -> None:
        """Replace all vectors of the given pages; see `VectorIndex.replace`."""
        async with self._writing:
            for collection in (await self._opened(), self._copy):
                if collection is not None:
                    await self._run(partial(_replace, collection, pages, vectors))

    async def clear(self) -> None:
        """Begin a new, empty collection. The previous one is deleted when the new one has been filled."""
        async with self._writing:
            self._collection = await self._run(self._make)

    async def search(self, query: Vector, k: int) -> WindowHits:
        """Return the ``k`` windows (page sections) nearest to a query, nearest first; see `VectorIndex.search`."""
        collection = await self._opened()
        try:
            return await self._run(lambda: _search(collection, query, k))
        except StorageError:
            if collection is self._collection:
                raise
        return await self.search(query, k)  # `settle` has replaced the collection

    async def cosines(self, query: Vector, pages: Sequence[int]) -> None:
        """Return None; the caller can compute the cosines faster from the vectors in the store."""

    async def size(self) -> int:
        """Return the number of vectors in the index."""
        return await self._run((await self._opened()).count)

    async def settle(self) -> None:
        """In a folder, remove deleted vectors from Chroma's files. On a server, do nothing."""
        folder = self._indexes.folder
        if folder is None:
            return
        async with self._settling:
            if _metadata(await self._opened()).get("has_removed"):
                await self._use_copy()
            if _untidy(folder).exists():
                await self._run(lambda: _tidy(folder))

    async def mark(self) -> str | None:
        """Return the text that `set_mark` stored last; see `VectorIndex.mark`."""
        if self._collection is not None and "mark" not in _metadata(self._collection):
            return None
        self._collection = await self._run(self._find)
        return None if self._collection is None else str(_metadata(self._collection)["mark"])

    async def set_mark(self, mark: str) -> None:
        """Store a short text that describes the state of the index; see `VectorIndex.set_mark`."""
        async with self._writing:
            collection = await self._opened()
            is_first = "mark" not in _metadata(collection)
            await self._run(lambda: _set(collection, mark=mark))
            if is_first:
                await self._delete_others(collection)

    async def _opened(self) -> Collection:
        async with self._opening:
            if self._collection is None:
                self._collection = await self._run(lambda: self._find() or self._make())
            return self._collection

    async def _use_copy(self) -> None:
        """Copy the vectors from the store to a new collection, and use this collection from then on."""
        copy, after = await self._run(self._make), 0
        try:
            self._copy = copy
            while True:
                async with self._writing:
                    block = await self._request.store.all_vectors(after, WINDOWS_AT_ONCE)
                    if len(block.seqs):
                        await self._run(partial(_add, copy, block))
                    if len(block.seqs) < WINDOWS_AT_ONCE:
                        break
                    after = int(block.seqs[-1])
            async with self._writing:
                mark = _metadata(await self._opened()).get("mark")
                if mark is None:  # the index was cleared meanwhile
                    return
                await self._run(lambda: _set(copy, mark=mark))
                self._collection = copy
                await self._delete_others(copy)
        finally:
            self._copy = None

    async def _run(self, function: Callable[[], _Result]) -> _Result:
        """Call a blocking function in a thread, and return its result.

        Raises:
            StorageError: Chroma failed.
        """
        with self._indexes.translated():
            return await anyio.to_thread.run_sync(function, abandon_on_cancel=self._indexes.folder is None)

    def _find(self) -> Collection | None:
        """Return the newest filled collection of this vector space; None if there is none."""
        found = self._indexes.database(self._request.user_id).list_collections()
        marked = [each for each in found if each.name.startswith(self._prefix) and "mark" in _metadata(each)]
        return max(marked, key=_made, default=None)

    def _make(self) -> Collection:
        return self._indexes.database(self._request.user_id).create_collection(
            f"{self._prefix}{secrets.token_hex(4)}",
            metadata={"made": time.time()},
            configuration={"hnsw": _HNSW},
            embedding_function=None,
        )

    async def _delete_others(self, kept: Collection) -> None:
        """Delete collections of deleted vector spaces, and all replaced or unfinished collections but ``kept``."""
        known = {self._prefix, *(_prefix(space.identity) for space in await self._request.store.spaces())}
        folder = self._indexes.folder

        def delete() -> None:
            client = self._indexes.database(self._request.user_id)
            for each in client.list_collections():
                is_own, is_filled = each.name.startswith(self._prefix), "mark" in _metadata(each)
                is_replaced = is_own and (is_filled or folder is not None)
                is_abandoned = not is_filled and _made(each) < time.time() - ABANDONED_S
                is_unknown = not any(map(each.name.startswith, known))
                if each.name != kept.name and (is_replaced or is_abandoned or is_unknown):
                    if folder is not None:
                        _untidy(folder).touch()
                    client.delete_collection(each.name)

        await self._run(delete)


def _replace(collection: Collection, pages: Sequence[int], vectors: PageVectors) -> None:
    for first in range(0, len(pages), WINDOWS_AT_ONCE):
        some = [*pages[first : first + WINDOWS_AT_ONCE]]
        known = collection.get(where={"seq": {"$in": some}}, include=[])["ids"]
        if gone := set(known).difference(_ids(vectors)):
            _set(collection, has_removed=True)
            collection.delete(ids=sorted(gone))
    _add(collection, vectors)


def _add(collection: Collection, vectors: PageVectors) -> None:
    ids = _ids(vectors)
    for first in range(0, len(ids), WINDOWS_AT_ONCE):
        part = slice(first, first + WINDOWS_AT_ONCE)
        numbers: list[Mapping[str, int]] = [{"seq": seq} for seq in vectors.seqs[part].tolist()]
        collection.upsert(ids=ids[part], embeddings=vectors.vectors[part], metadatas=numbers)


def _search(collection: Collection, query: Vector, k: int) -> WindowHits:
    found = collection.query(query_embeddings=query[None], n_results=max(k, 1), include=["distances"])
    places = np.array([each.split(":") for each in found["ids"][0]], dtype=np.int64).reshape(-1, 2)[:k]
    distances = np.array((found["distances"] or [[]])[0], dtype=np.float32)[:k]
    return WindowHits(places[:, 0], places[:, 1], 1 - distances)


def _ids(vectors: PageVectors) -> list[str]:
    parts = parts_of(vectors.seqs).tolist()
    return [f"{seq}:{part}" for seq, part in zip(vectors.seqs.tolist(), parts, strict=True)]


def _metadata(collection: Collection) -> Mapping[str, Any]:
    return collection.metadata or {}


def _made(collection: Collection) -> float:
    return float(_metadata(collection).get("made", 0))


def _set(collection: Collection, **values: str | bool) -> None:
    collection.modify(metadata={**_metadata(collection), **values})


def _prefix(space: str) -> str:
    return f"space-{_digest(space)}-"


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:32]


def _untidy(folder: Path) -> Path:
    """Return the path of a marker file. While it exists, the folder may contain files of deleted collections."""
    return folder / "untidy"


def _tidy(folder: Path) -> None:
    """Delete the data of deleted collections from the files of a Chroma folder."""
    # A collection's row is made before its files, and deleted before them.
    files = [each for each in folder.iterdir() if each.is_dir()]
    with closing(sqlite3.connect(folder / "chroma.sqlite3", timeout=BUSY_S)) as connection:
        used = {str(row[0]) for row in connection.execute("SELECT id FROM segments")}
        connection.execute("VACUUM")
    left = [each for each in files if each.name not in used]
    for each in left:
        shutil.rmtree(each, ignore_errors=True)
    if not any(each.exists() for each in left):  # Windows does not remove open files
        _untidy(folder).unlink(missing_ok=True)


def _locked(path: Path) -> IO[bytes] | None:
    """Open a file and lock it until it is closed. Return None if another process has locked it."""
    file = path.open("ab")
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return None
    return file
