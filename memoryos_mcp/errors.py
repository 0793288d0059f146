"""Errors: every error that this package raises on purpose.

MemoryOSError
├── ConfigError            a setting is missing, unknown or out of range
├── ArgumentError          an argument of a caller is not valid; the text names the argument and the fix
├── ImportFormatError      a file to import cannot be read: it is truncated, malicious or of an unknown format
├── StorageError           the store could not be read or written
│   ├── DamagedStoreError      the file is damaged or not a memory of this program; it was not changed
│   ├── NewerStoreError        the file was written by a newer version; it was not changed
│   └── LeaseLostError         another process now does this user's background work
├── ClientFileError        the file of an MCP client cannot be read or changed; it was not changed
├── IssuerError            the issuer of JWTs did not answer, so the token could not be checked
└── ModelError             the LLM or the embedder failed; pages stay queued
    ├── ReplyFormatError       the LLM's reply does not have the requested format
    └── BudgetSpentError       the daily token limit is reached; no request was sent
"""


class MemoryOSError(Exception):
    """Base of every error raised on purpose. Its text is meant for users, and contains no dialogue and no key."""


class ConfigError(MemoryOSError):
    """A setting is missing, unknown or out of range."""


class ArgumentError(MemoryOSError):
    """An argument of a caller is not valid.

    Args:
        argument: Name of the argument.
        problem: What is wrong and what to do; it must not contain the argument's value.
    """

    def __init__(self, *, argument: str, problem: str) -> None:
        super().__init__(f"{argument}: {problem}")
        self.argument = argument
        self.problem = problem


class ImportFormatError(MemoryOSError):
    """A file to import cannot be read: it is truncated, malicious, too new or of an unknown format."""


class StorageError(MemoryOSError):
    """The store could not be read or written; no change was written in part."""


class DamagedStoreError(StorageError):
    """The file is damaged or not a memory of this program; it was not changed."""


class NewerStoreError(StorageError):
    """The file was written by a newer version of this program; it was not changed."""


class LeaseLostError(StorageError):
    """Another process now does this user's background work; the results of this process were discarded."""


class ClientFileError(MemoryOSError):
    """The file in which an MCP client lists its servers cannot be read or changed; it was not changed."""


class IssuerError(MemoryOSError):
    """The issuer of JWTs did not return its keys, so the token could not be checked."""


class ModelError(MemoryOSError):
    """A model could not be loaded or did not answer; pages stay queued."""


class ReplyFormatError(ModelError):
    """The LLM's reply does not have the requested format; no part of it was stored."""


class BudgetSpentError(ModelError):
    """The daily token limit is reached; no request was sent to the LLM."""
