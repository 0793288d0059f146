"""Every error this package raises on purpose.

MemoryOSError
├── ConfigError            a setting is missing, unknown or out of range
├── ArgumentError          a caller's argument is not valid; names the argument and the fix
├── ImportFormatError      a file to import cannot be read: cut off, hostile, of another format
├── StorageError           the store could not be read or written
│   ├── DamagedStoreError      it is damaged or not ours; it was left untouched
│   ├── NewerStoreError        it was written by a newer version; it was left untouched
│   └── LeaseLostError         another process now does this user's background work
├── ClientFileError        an MCP client's file cannot be read or changed; it was left untouched
├── IssuerError            the issuer of JWTs did not answer; the token could not be checked
└── ModelError             the LLM or the embedder failed; pages stay queued
    ├── ReplyFormatError       the LLM's reply does not have the requested format
    └── BudgetSpentError       the daily token limit is reached; no request was sent
"""


class MemoryOSError(Exception):
    """Base of every error raised on purpose; its text is for users and contains no dialogue and no key."""


class ConfigError(MemoryOSError):
    """A setting is missing, unknown or out of range."""


class ArgumentError(MemoryOSError):
    """A caller's argument is not valid.

    Args:
        argument: Name of the argument.
        problem: What is wrong and what to do, without the argument's value.
    """

    def __init__(self, *, argument: str, problem: str) -> None:
        super().__init__(f"{argument}: {problem}")
        self.argument = argument
        self.problem = problem


class ImportFormatError(MemoryOSError):
    """A file to import cannot be read: it is cut off, hostile, too new or of an unknown format."""


class StorageError(MemoryOSError):
    """The store could not be read or written; nothing was half-written."""


class DamagedStoreError(StorageError):
    """The file is damaged or not ours; it was left untouched."""


class NewerStoreError(StorageError):
    """The file was written by a newer version of this program; it was left untouched."""


class LeaseLostError(StorageError):
    """Another process has taken over this user's background work; results computed here were dropped."""


class ClientFileError(MemoryOSError):
    """The file in which an MCP client lists its servers cannot be read or changed; it was left untouched."""


class IssuerError(MemoryOSError):
    """The issuer of JWTs could not be asked for its keys, so the token could not be checked."""


class ModelError(MemoryOSError):
    """A model could not be loaded or did not answer; pages stay queued."""


class ReplyFormatError(ModelError):
    """The LLM's reply does not have the requested format; nothing of it was stored."""


class BudgetSpentError(ModelError):
    """The daily token limit is reached; the LLM was not asked."""
