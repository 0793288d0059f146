"""Every error this package raises on purpose.

MemoryOSError
├── ConfigError            a setting is missing, unknown or out of range
├── ArgumentError          a caller's argument cannot be used; names the argument and the fix
├── ImportFormatError      a file to be taken in cannot be read: cut off, hostile, of another format
├── StorageError           the store could not be read or written
│   ├── DamagedStoreError      its content is not ours or broken; it was left untouched
│   ├── NewerStoreError        it was written by a newer version; it was left untouched
│   └── LeaseLostError         another process does this user's background work now
├── ClientFileError        an MCP client's file cannot be read or changed; it was left as it was
├── IssuerError            the issuer of JWTs could not be asked; nothing is known about the token
└── ModelError             the LLM or the embedder failed; pages stay queued
    ├── ReplyFormatError       the LLM answered, but not in the asked form
    └── BudgetSpentError       the day's tokens are spent; nothing was asked
"""


class MemoryOSError(Exception):
    """Base of every error raised on purpose; its text is fit for a user and holds no dialogue and no key."""


class ConfigError(MemoryOSError):
    """A setting is missing, unknown or out of range."""


class ArgumentError(MemoryOSError):
    """A caller's argument cannot be used.

    Args:
        argument: Name of the argument.
        problem: What is wrong and what to do, without the argument's text.
    """

    def __init__(self, *, argument: str, problem: str) -> None:
        super().__init__(f"{argument}: {problem}")
        self.argument = argument
        self.problem = problem


class ImportFormatError(MemoryOSError):
    """A file to be taken in cannot be read: it is cut off, hostile, too new or of no known format."""


class StorageError(MemoryOSError):
    """The store could not be read or written; nothing was half-written."""


class DamagedStoreError(StorageError):
    """The file's content is not ours or broken; it was left untouched."""


class NewerStoreError(StorageError):
    """The file was written by a newer version of this program; it was left untouched."""


class LeaseLostError(StorageError):
    """Another process has taken over this user's background work; what was computed here was dropped."""


class ClientFileError(MemoryOSError):
    """The file in which an MCP client lists its servers cannot be read or changed; it was left as it was."""


class IssuerError(MemoryOSError):
    """The issuer of JWTs could not be asked for its keys, so nothing is known about the token that was shown."""


class ModelError(MemoryOSError):
    """A model could not be loaded or did not answer; pages stay queued."""


class ReplyFormatError(ModelError):
    """The LLM answered, but not in the asked form; nothing of its answer was kept."""


class BudgetSpentError(ModelError):
    """The tokens that may be spent in a day are spent; the LLM was not asked."""
