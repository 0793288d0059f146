"""Sign-ins to the web pages, for all servers that share a database."""

import hashlib
from collections.abc import Callable

from memoryos_mcp.errors import StorageError
from memoryos_mcp.model.callers import Caller, Scope
from memoryos_mcp.storage.capabilities import IDLE_S, LONGEST_S, SESSIONS_AT_MOST, SESSIONS_OF_ONE, SignIn
from memoryos_mcp.storage.postgres.database import Deployment
from memoryos_mcp.storage.sql.moments import from_us, to_us

# The time of the last request is stored at most this often, so that most requests only read.
NOTED_EVERY_S = 60.0
_ENDED = (
    f"used_at < clock_timestamp() - make_interval(secs => {IDLE_S}) "
    f"OR began_at < clock_timestamp() - make_interval(secs => {LONGEST_S})"
)
# Parameters: the digest, the user, the scopes, the token, the issuer, and the time at which the issuer's token expires.
# The first part removes sign-ins that have ended, and those that exceed the limits. It skips rows that another server
# is removing at the same time.
_BEGIN = f"""
WITH removed AS (
    DELETE FROM sign_ins WHERE digest IN (
        SELECT digest FROM sign_ins WHERE {_ENDED}
        OR digest IN (SELECT digest FROM sign_ins ORDER BY used_at DESC OFFSET {SESSIONS_AT_MOST - 1})
        OR digest IN (
            SELECT digest FROM sign_ins WHERE (user_id, scopes, token_id) = ($2, $3, $4)
            AND issuer IS NOT DISTINCT FROM $5 ORDER BY used_at DESC OFFSET {SESSIONS_OF_ONE - 1}
        ) FOR UPDATE SKIP LOCKED
    )
)
INSERT INTO sign_ins (digest, user_id, scopes, token_id, issuer, expires_us, began_at, used_at)
VALUES ($1, $2, $3, $4, $5, $6, clock_timestamp(), clock_timestamp()) ON CONFLICT DO NOTHING
"""  # noqa: S608 - constants
_FIND = f"""
SELECT user_id, scopes, token_id, issuer, expires_us,
    used_at < clock_timestamp() - make_interval(secs => {NOTED_EVERY_S})
FROM sign_ins WHERE digest = $1 AND NOT ({_ENDED})
"""  # noqa: S608 - constants
_NOTE_USE = "UPDATE sign_ins SET used_at = clock_timestamp() WHERE digest = $1"
_END = "DELETE FROM sign_ins WHERE digest = $1"


class PostgresSignIns:
    """The sign-ins in one database. All times are those of the database's clock. Implements `SignIns`.

    Args:
        deployment: A function that returns the connections to the database.
    """

    def __init__(self, deployment: Callable[[], Deployment]) -> None:
        self._deployment = deployment

    def begin(self, key: str, sign_in: SignIn) -> bool:
        deployment = self._deployment()
        if deployment.look_again() is not None:
            return False
        caller, expires_at = sign_in.caller, sign_in.expires_at
        scopes, expires_us = " ".join(sorted(caller.scopes)), None if expires_at is None else to_us(expires_at)
        parameters = (_digest(key), caller.user_id, scopes, caller.token_id, sign_in.issuer, expires_us)
        deployment.retried(lambda raw: raw.execute(_BEGIN, parameters))
        return True

    def find(self, key: str) -> SignIn | None:
        deployment = self._deployment()
        parameters = (_digest(key),)
        row = deployment.retried(lambda raw: raw.execute(_FIND, parameters).fetchone())
        if row is None:
            return None
        user_id, scopes, token_id, issuer, expires_us, is_to_be_noted = row
        if is_to_be_noted and deployment.look_again() is None:
            deployment.retried(lambda raw: raw.execute(_NOTE_USE, parameters))
        caller = Caller(user_id, frozenset(Scope(name) for name in scopes.split()), token_id)
        return SignIn(caller, issuer, None if expires_us is None else from_us(expires_us))

    def end(self, key: str) -> bool:
        deployment = self._deployment()
        if (problem := deployment.look_again()) is not None:
            raise StorageError(problem)
        return deployment.retried(lambda raw: raw.execute(_END, (_digest(key),)).rowcount) > 0


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()
