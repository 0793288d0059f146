"""The scope of a query: the project in which it is asked, and whether pages of other projects are hidden."""

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Scope:
    """The project of a query.

    Attributes:
        project: Name of the project; None for a query without a project.
        is_walled: Whether memories of other projects are left out (the setting ``project_isolation``).
    """

    project: str | None = None
    is_walled: bool = False

    def __bool__(self) -> bool:
        """Return whether the scope changes the result of a query."""
        return self.project is not None or self.is_walled

    def includes(self, project: str | None) -> bool:
        """Return whether a page of ``project`` belongs to the scope. Pages without a project belong to every scope."""
        return project is None or project == self.project

    def hidden(self, projects: Mapping[K, Collection[str | None]], *, needs_all: bool) -> frozenset[K]:
        """Return the keys of the memories that are outside of the scope.

        Args:
            projects: Maps the key of each memory to the projects of the pages that support the memory.
            needs_all: Whether a memory needs all of these pages in the scope. If False, one page is enough.
        """
        enough = all if needs_all else any
        return frozenset(key for key, found in projects.items() if not enough(map(self.includes, found)))


EVERYTHING = Scope()
