"""A client of version 2 of Chroma's HTTP API. Chroma servers support this version since release 1.0.

The client has only the methods that `ChromaIndex` needs. Chroma's own client is not used: it sets no timeouts, does not
close its connections, and requires about a hundred other packages.
"""

import base64
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import httpx2
import numpy as np
from numpy.typing import NDArray

CONNECT_TIMEOUT_S = 5.0
TIMEOUT_S = 30.0
_TENANT = "/api/v2/tenants/default_tenant"


class ChromaServer:
    """A client of one Chroma server. Safe to share between threads."""

    def __init__(self, url: str) -> None:
        timeout = httpx2.Timeout(TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
        self._http = httpx2.Client(base_url=url, timeout=timeout, follow_redirects=False)

    def close(self) -> None:
        """Close the connections to the server."""
        self._http.close()

    def check(self) -> None:
        """Raise an error if the server does not answer."""
        _checked(self._http.get("/api/v2/heartbeat"))

    def database(self, name: str) -> "ServerDatabase":
        """Return the database with this name, and create it if it is missing."""
        if self._http.get(f"{_TENANT}/databases/{name}").status_code == HTTPStatus.NOT_FOUND:
            response = self._http.post(f"{_TENANT}/databases", json={"name": name})
            if response.status_code != HTTPStatus.CONFLICT:  # another process has just made it
                _checked(response)
        return ServerDatabase(self._http, f"{_TENANT}/databases/{name}/collections")


class ServerDatabase:
    """A database on a Chroma server."""

    def __init__(self, http: httpx2.Client, path: str) -> None:
        self._http = http
        self._path = path

    def list_collections(self) -> list["ServerCollection"]:
        """Return all collections of the database."""
        return [self._collection(each) for each in _checked(self._http.get(self._path))]

    def create_collection(
        self, name: str, *, metadata: Mapping[str, Any], configuration: Mapping[str, Any], embedding_function: None
    ) -> "ServerCollection":
        """Create a collection and return it. ``embedding_function`` must be None: the caller provides the vectors."""
        del embedding_function
        body = {"name": name, "metadata": metadata, "configuration": configuration, "get_or_create": False}
        return self._collection(_checked(self._http.post(self._path, json=body)))

    def delete_collection(self, name: str) -> None:
        """Delete a collection with its vectors."""
        _checked(self._http.delete(f"{self._path}/{name}"))

    def _collection(self, found: Mapping[str, Any]) -> "ServerCollection":
        return ServerCollection(self._http, f"{self._path}/{found['id']}", found["name"], found.get("metadata") or {})


class ServerCollection:
    """A collection on a Chroma server.

    Attributes:
        name: Name of the collection.
        metadata: Metadata of the collection, as last read from the server or set by `modify`.
    """

    def __init__(self, http: httpx2.Client, path: str, name: str, metadata: Mapping[str, Any]) -> None:
        self._http = http
        self._path = path
        self.name = name
        self.metadata = metadata

    def count(self) -> int:
        """Return the number of vectors in the collection."""
        return int(_checked(self._http.get(f"{self._path}/count")))

    def modify(self, *, metadata: Mapping[str, Any]) -> None:
        """Replace the metadata of the collection."""
        _checked(self._http.put(self._path, json={"new_metadata": metadata}))
        self.metadata = metadata

    def get(self, *, where: Mapping[str, Any], include: Sequence[str]) -> Any:
        """Return the ids of the vectors whose metadata match ``where``, and the fields listed in ``include``."""
        return self._post("get", {"where": where, "include": include})

    def delete(self, *, ids: Sequence[str]) -> None:
        """Delete the vectors with the given ids. Unknown ids are ignored."""
        self._post("delete", {"ids": ids})

    def upsert(
        self, *, ids: Sequence[str], embeddings: NDArray[np.float32], metadatas: Sequence[Mapping[str, Any]]
    ) -> None:
        """Add or replace the vectors with the given ids. ``embeddings`` has the shape ``(n, dimension)``."""
        texts = [base64.b64encode(each.astype("<f4").tobytes()).decode("ascii") for each in embeddings]
        self._post("upsert", {"ids": ids, "embeddings": texts, "metadatas": metadatas})

    def query(self, *, query_embeddings: NDArray[np.float32], n_results: int, include: Sequence[str]) -> Any:
        """Return the ids of the ``n_results`` vectors nearest to each query, and the fields listed in ``include``."""
        body = {"query_embeddings": query_embeddings.tolist(), "n_results": n_results, "include": include}
        return self._post("query", body)

    def _post(self, action: str, body: Mapping[str, Any]) -> Any:
        return _checked(self._http.post(f"{self._path}/{action}", json=body))


def _checked(response: httpx2.Response) -> Any:
    """Return the JSON value in a response. Raise `RuntimeError` if the response is an error."""
    if response.is_success:
        return response.json() if response.content else None
    try:
        reason = str(response.json()["message"])
    except (ValueError, KeyError, TypeError):
        reason = response.reason_phrase
    msg = f"{response.status_code} {reason}"
    raise RuntimeError(msg)
