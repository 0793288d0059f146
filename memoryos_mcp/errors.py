"""Every error that this package raises on purpose.

MemoryOSError
├── ConfigError            a setting is missing, unknown or out of range
├── ArgumentError          an argument is not valid; the message names the argument and says what to do
├── ImportFormatError      a file cannot be imported: it is truncated, malicious or in an unknown format
├── StorageError           the store could not be read or written
│   ├── DamagedStoreError      the store's file is damaged or was made by another program; it was not changed
│   ├── NewerStoreError        the store's file was written by a newer version; it was not changed
│   └── LeaseLostError         another process took over the background work, or memories were forgotten during it
├── ClientFileError        the configuration file of an MCP client could not be read or changed; it is unchanged
├── IssuerError            the JWT issuer did not return its keys, so a token could not be checked
└── ModelError             the LLM or the embedding model failed; pages that needed the model are processed later
    ├── ModelClosedError       the model was closed, because the program ends or the memory was closed
    ├── ReplyFormatError       the LLM's reply does not have the requested format
    └── BudgetSpentError       the daily token limit is reached; no request was sent
"""


class MemoryOSError(Exception):
    """Base class of all errors raised on purpose. Messages are meant for users and contain no dialogue or API keys."""


class ConfigError(MemoryOSError):
    """A setting is missing, unknown or out of range."""


class ArgumentError(MemoryOSError):
    """An argument is not valid.

    Args:
        argument: Name of the argument.
        problem: What is wrong and what to do. It must not contain the argument's value.
    """

    def __init__(self, *, argument: str, problem: str) -> None:
        super().__init__(f"{argument}: {problem}")
        self.argument = argument
        self.problem = problem


class ImportFormatError(MemoryOSError):
    """A file cannot be imported: it is truncated, malicious, too new or in an unknown format."""


class StorageError(MemoryOSError):
    """The store could not be read or written. A change is stored completely or not at all."""


class DamagedStoreError(StorageError):
    """The store's file is damaged, or was not made by this program; it was not changed."""


class NewerStoreError(StorageError):
    """The store's file was written by a newer version of this program; it was not changed."""


class LeaseLostError(StorageError):
    """Another process took over the background work, or memories were forgotten during it. The work was discarded."""


class ClientFileError(MemoryOSError):
    """The file in which an MCP client lists its servers could not be read or changed. It is unchanged."""


class IssuerError(MemoryOSError):
    """The JWT issuer did not return its keys, so a token could not be checked."""


class ModelError(MemoryOSError):
    """A model could not be loaded, or did not answer. Pages that needed the model are processed later."""


class ModelClosedError(ModelError):
    """The model was closed, because the program ends or the memory was closed. Nothing has failed."""


class ReplyFormatError(ModelError):
    """The LLM's reply does not have the requested format; no part of the reply was stored."""


class BudgetSpentError(ModelError):
    """The daily token limit is reached; no request was sent to the LLM."""
