"""The class `MemoryEngine`: one user's memory and its background work."""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread

from memoryos_mcp.config import Settings
from memoryos_mcp.config.sources import check_data_folder, load_settings
from memoryos_mcp.consolidation.accounts import StoredAccount
from memoryos_mcp.consolidation.embedding_migration import VectorSpaces
from memoryos_mcp.consolidation.forgetting import DryRun, Forgetting, Selection
from memoryos_mcp.consolidation.worker import Worker
from memoryos_mcp.engine import correcting, inspection
from memoryos_mcp.engine.inspection import ListPart
from memoryos_mcp.engine.responding import Manner, Responding, Response
from memoryos_mcp.engine.validation import Validation, check_query, check_results, check_tokens
from memoryos_mcp.engine.wiring import Components, Overrides, make_components
from memoryos_mcp.errors import ArgumentError
from memoryos_mcp.llm.extractive.titles import titles
from memoryos_mcp.llm.providers import endpoint_of
from memoryos_mcp.llm.recording import LOG_NAME
from memoryos_mcp.model.forgotten import ForgetReceipt
from memoryos_mcp.model.heat import HeatWeights
from memoryos_mcp.model.knowledge import About
from memoryos_mcp.model.pages import NewTurn, Page, Source, Tier, Turn, project_name, utc_now
from memoryos_mcp.model.profile import Trait, most_telling_first
from memoryos_mcp.model.redaction import Redaction, redact_turn
from memoryos_mcp.model.segments import Segment
from memoryos_mcp.model.stats import LlmStats, ProfileView, Stats, UsageEntry
from memoryos_mcp.model.views import Learned, MemoryView, TitledSegment, TopicView
from memoryos_mcp.retrieval.fitting import Limits
from memoryos_mcp.retrieval.index.choice import FAISS
from memoryos_mcp.retrieval.index.interface import IndexRequest
from memoryos_mcp.retrieval.page_index import PageIndex
from memoryos_mcp.retrieval.recall import Recall
from memoryos_mcp.retrieval.retrieving import Retrieving
from memoryos_mcp.retrieval.scope import Scope
from memoryos_mcp.retrieval.strategy import Candidates
from memoryos_mcp.storage.capabilities import StorageState
from memoryos_mcp.storage.interface import Store
from memoryos_mcp.storage.values import Corrected, FactQuery, Failure, Pending, Receipt, StoreOptions
from memoryos_mcp.text.user_ids import user_folder
from memoryos_mcp.transfer import export_format
from memoryos_mcp.transfer.export_format import Contents
from memoryos_mcp.transfer.reports import ImportReport


class MemoryEngine:
    """One user's memory. Create it with `open`. It is safe to share between asyncio tasks.

    To serve many users in one process, use a `MemoryService`, which shares the models between the users. Every method
    raises StorageError if the store cannot be read or written.
    """

    def __init__(self, user_id: str, settings: Settings, components: Components, store: Store, folder: Path) -> None:
        self.user_id = user_id
        self._settings = settings
        self._components = components
        self._store = store
        self._heat = HeatWeights(
            alpha=settings.heat_alpha, beta=settings.heat_beta, gamma=settings.heat_gamma, mu_s=settings.heat_mu_s
        )
        self._account = StoredAccount(store, zone=settings.zone, clock=components.clock)
        self._chat = components.make_chat(self._account, folder)
        self._analyst = components.make_analyst(self._chat)
        self._validation = Validation(settings, components.clock)
        self._responding = Responding(self._chat, settings, self._account, self._validation, components.clock)
        # This function does not reference the engine: a cycle would delay the release of a closed memory.
        make_retrieving = partial(
            Retrieving,
            strategy=components.strategy,
            weights=self._heat,
            zone=settings.zone,
            clock=components.clock,
        )

        def make_index(store: Store, space: str, dimension: int) -> PageIndex:
            index = components.make_index(IndexRequest(settings, user_id, space, dimension, store))
            return PageIndex(store, index, settings.max_vectors_in_ram if settings.vector_index == FAISS else None)

        self._spaces = VectorSpaces(store, components.embedders, make_retrieving, make_index, components.clock)
        self._forgetting = Forgetting(
            store,
            components.fallback,
            folder / LOG_NAME,
            retention=None if settings.retention_days is None else timedelta(days=settings.retention_days),
            zone=settings.zone,
            clock=components.clock,
            purge_index=self._spaces.purge,
        )
        self._worker = Worker(
            settings,
            store,
            self._analyst,
            components.fallback,
            weights=self._heat,
            spaces=self._spaces,
            forgetting=self._forgetting,
            clock=components.clock,
        )

    @classmethod
    @asynccontextmanager
    async def open(
        cls, user_id: str, *, config_file: Path | None = None, **settings: Any
    ) -> AsyncIterator["MemoryEngine"]:
        """Open a user's memory and yield it. At the end of the ``async with`` block, close the memory and its models.

        Args:
            user_id: Id of the user; any text.
            config_file: Path of a config.json. None means the path in the environment variable ``MEMORYOS_CONFIG``, or
                no file if this variable is not set.
            settings: Settings by name. They override environment variables, which override the file.

        Raises:
            ConfigError: A setting is not valid.
            ArgumentError: The id is not a valid user id.
            StorageError: The store could not be opened.
        """
        chosen = load_settings(config_file, {**settings, "user_id": user_id})
        await anyio.to_thread.run_sync(partial(check_data_folder, chosen, may_only_read=True))
        endpoint = endpoint_of(chosen, os.environ)
        components = await anyio.to_thread.run_sync(make_components, chosen, endpoint, utc_now, Overrides())
        try:
            engine = await cls.begin(user_id, chosen, components)
            try:
                yield engine
            finally:
                await engine.close()
        finally:
            await components.aclose()

    @classmethod
    async def begin(
        cls, user_id: str, settings: Settings, components: Components, *, only_looks: bool = False
    ) -> "MemoryEngine":
        """Open a user's memory, start its background work, and return the memory.

        Args:
            user_id: Id of the user; any text.
            settings: Validated settings.
            components: Models, threads and the clock, which can be shared by many memories. The caller closes them
                after the memory.
            only_looks: Whether to open an existing memory read-only. A read-only memory does no background work, and
                does not count retrievals as visits. Its search uses only keywords until `load_to_look` is called.

        Raises:
            ArgumentError: The id is not a valid user id.
            StorageError: The store could not be opened.
        """
        options = StoreOptions(
            assistant_id=settings.assistant_id,
            short_term_capacity=settings.short_term_capacity,
            session_gap_s=settings.session_gap_s,
            knowledge_capacity=settings.long_term_knowledge_capacity,
        )
        folder = user_folder(settings.data_storage_path, user_id)
        store = await components.stores.open(user_id, options, only_reads=only_looks)
        engine = cls(user_id, settings, components, store, folder)
        if store.only_reads_because is not None:
            engine._worker.start_to_read()
        elif not only_looks:
            engine._worker.start()
        return engine

    def is_in_place(self) -> bool:
        """Return whether this memory can still be used. If not, the caller must close it and open it again.

        The result is False if the file was replaced or removed, or was opened read-only and is now writable.
        """
        return self._store.is_in_place()

    async def keep_lost(self) -> None:
        """Save a copy of the memory's open file if that file was replaced or removed on disk. Call this before `close`.

        Raises:
            StorageError: There is not enough disk space. The caller can free some space and call this again.
        """
        await self._store.keep_lost()

    async def load_to_look(self) -> None:
        """Enable semantic search on a read-only memory, for the pages that already have vectors.

        Raises:
            ModelError: The model could not be loaded.
        """
        await self._spaces.open_to_read()

    async def add(
        self,
        user_input: str,
        agent_response: str,
        *,
        timestamp: str | datetime | None = None,
        meta_data: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        source: str = Source.CONVERSATION,
        project: str | None = None,
    ) -> Receipt:
        """Store one turn on disk, and return the receipt. Topics, traits and facts are extracted in the background.

        Args:
            user_input: What the user said; may be empty if ``agent_response`` is not empty.
            agent_response: What the assistant answered; may be empty if ``user_input`` is not empty.
            timestamp: Time of the turn: a datetime, or a string in ISO 8601. None means now. A time without a zone is
                in the user's time zone.
            meta_data: The caller's own notes about the turn, stored as JSON.
            idempotency_key: A key for the turn. Of several turns with the same key, only the first is stored.
            source: Origin of the text: conversation, tool, web or document. Facts about the user are extracted only
                from conversations.
            project: Name of the project that the turn belongs to, at most 200 characters; None for no project.

        Returns:
            The receipt. It lists the kinds of secrets that were removed according to the setting ``secret_policy``.

        Raises:
            ArgumentError: An argument is not valid or contains a secret that the policy rejects; nothing was stored.
            StorageError: The turn could not be written to disk; nothing was stored.
        """
        new = NewTurn(
            user_input,
            agent_response,
            timestamp=timestamp,
            meta_data=meta_data,
            idempotency_key=idempotency_key,
            source=source,
            project=project,
        )
        return await self._add(await self._validation.turn(new))

    async def add_answer(
        self, query: str, answer: str, *, meta_data: Mapping[str, Any] | None, forgettings: int
    ) -> Receipt:
        """Store a query and the answer that the LLM generated from memories, and return the receipt.

        Args:
            query: What the user said.
            answer: What the assistant answered; it may quote memories.
            meta_data: The caller's own notes about the turn.
            forgettings: The memory's forget epoch when the memory was read for the answer. Each forget operation
                increases the epoch.

        Raises:
            ArgumentError: An argument is not valid or contains a secret that the policy rejects; nothing was stored.
            LeaseLostError: The forget epoch has changed, so the answer may quote forgotten text; nothing was stored.
            StorageError: The turn could not be written to disk; nothing was stored.
        """
        return await self._add(await self._validation.turn(NewTurn(query, answer, meta_data=meta_data)), forgettings)

    async def _add(self, redaction: Redaction, forgettings: int | None = None) -> Receipt:
        (receipt,) = await self._store.add_pages([redaction.turn], forget_epoch=forgettings)
        self._worker.page_added(receipt.pending)
        return replace(receipt, redacted=redaction.kinds)

    async def retrieve(
        self,
        query: str,
        *,
        max_results: int | None = None,
        max_tokens: int | None = None,
        reserved_tokens: int = 0,
        has_all_recent: bool = False,
        is_visit: bool = True,
        project: str | None = None,
    ) -> Recall:
        """Return the memories that are relevant to a query, from all three tiers.

        Secrets in the query are replaced with placeholders unless ``secret_policy`` is ``off``.

        Args:
            query: A question or keywords.
            max_results: Maximum number of pages to return in addition to short-term pages, 1 to 100. None means
                ``retrieval_queue_capacity``, and leaves out pages that score far below the best page.
            max_tokens: Token budget of the result, 100 to 1,000,000. None means ``retrieval_max_tokens``. Pages that do
                not fit are left out. If only ``max_results`` is set, they are shortened to excerpts instead.
            reserved_tokens: Number of tokens of the budget that the caller needs for its own text.
            has_all_recent: Whether to include all short-term pages, up to half of the budget. Use True if these pages
                are the current conversation. False includes only the newest two of them, and those that are relevant to
                the query.
            is_visit: Whether the retrieval counts as a visit of the topics in its result. Visits increase the heat of
                topics.
            project: Name of the project in which the query is asked. Pages of this project are preferred, and
                wishes that were learned only in other projects are left out. None means that projects make no
                difference, unless ``project_isolation`` is set.

        Raises:
            ArgumentError: An argument is not valid.
        """
        limits = Limits(
            pages=self._settings.retrieval_queue_capacity if max_results is None else max_results,
            tokens=self._settings.retrieval_max_tokens if max_tokens is None else max_tokens,
            reserved_tokens=reserved_tokens,
            is_cut=max_results is None,
            is_elastic=max_results is not None and max_tokens is None,
            has_all_recent=has_all_recent,
        )
        (recall,) = await self._retrieve(query, limits, [limits.tokens], project)
        if is_visit:
            self._worker.visited(segment.segment for segment, _ in recall.segments)
        return recall

    async def recall(
        self,
        prompt: str,
        *,
        max_tokens: int,
        project: str | None = None,
        is_new: Callable[[Page], bool] = lambda _: True,
    ) -> Recall:
        """Return the pages and facts that are relevant to a prompt; the result may be empty.

        Use this for prompts that do not ask for memories, because `retrieve` returns pages even if none is relevant.
        The call does not count as a visit of topics.

        Args:
            prompt: What the user said.
            max_tokens: Token budget of the result, 100 to 1,000,000.
            project: Name of the project in which the prompt was written; see `retrieve`.
            is_new: Function that returns False for pages to leave out, such as pages of the current session.

        Raises:
            ArgumentError: An argument is not valid.
        """
        text = self._checked(prompt, [max_tokens])
        limits = Limits(self._settings.retrieval_queue_capacity, max_tokens)
        await self._worker.until_loaded()
        with self._spaces.query_priority.querying():
            return await self._spaces.retrieving.recall(text, limits, is_new, self._scope(project))

    async def compare_budgets(self, query: str, budgets: Sequence[int]) -> list[Recall]:
        """Return one result of `retrieve` for each token budget. The call does not count as a visit of topics.

        Args:
            query: A question or keywords.
            budgets: Token budgets, each 100 to 1,000,000.

        Raises:
            ArgumentError: An argument is not valid.
        """
        return await self._retrieve(query, Limits(self._settings.retrieval_queue_capacity, max(budgets)), budgets)

    async def _retrieve(
        self, query: str, limits: Limits, budgets: Sequence[int], project: str | None = None
    ) -> list[Recall]:
        check_results(limits.pages)
        text, scope = self._checked(query, budgets), self._scope(project)
        await self._worker.until_loaded()
        with self._spaces.query_priority.querying():
            return await self._spaces.retrieving.retrieve(text, limits, budgets, scope)

    def _checked(self, query: str, budgets: Sequence[int]) -> str:
        """Return ``query`` with its secrets redacted. Raise ArgumentError if ``query`` or a budget is not valid."""
        if not query.strip():
            raise ArgumentError(argument="query", problem="is empty; pass a question or keywords")
        check_query(query)
        for tokens in budgets:
            check_tokens(tokens)
        return self._validation.query(query)

    async def respond(
        self,
        query: str,
        *,
        relationship: str = "",
        style_hint: str = "",
        meta_data: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
        max_reply_tokens: int | None = None,
        remember: bool = True,
    ) -> Response:
        """Let the LLM answer a query with the help of memories. Store the exchange, and return the answer.

        Args:
            query: The user's message.
            relationship: The assistant's relationship with the user, such as "tutor"; may be empty.
            style_hint: The desired style of the answer; may be empty.
            meta_data: The caller's own notes. They are included in the prompt and stored with the page.
            max_tokens: Token budget for the memories in the prompt, 100 to 1,000,000. None means
                ``retrieval_max_tokens``.
            max_reply_tokens: Maximum length of the reply in tokens, at least 1. A longer reply raises ModelError. None
                means the default limit of the LLM client.
            remember: Whether to store the query and the answer as a page.

        Raises:
            ArgumentError: An argument is not valid.
            ConfigError: No LLM is configured.
            ModelError: The LLM did not return a complete answer; nothing was stored.
            StorageError: The store could not be read, or the page could not be stored.
        """
        manner = Manner(relationship, style_hint, max_reply_tokens)
        return await self._responding.respond(
            self, query, manner, meta_data=meta_data, max_tokens=max_tokens, remember=remember
        )

    def respond_streaming(
        self,
        query: str,
        *,
        relationship: str = "",
        style_hint: str = "",
        meta_data: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
        max_reply_tokens: int | None = None,
        remember: bool = True,
    ) -> AsyncGenerator[str, None]:
        """Yield the answer of `respond` in pieces, as the LLM generates them.

        The query and the answer are stored after the last piece. If the caller stops earlier, the LLM call is cancelled
        and nothing is stored. To cancel the call immediately, use `contextlib.aclosing`.

        Raises:
            MemoryOSError: Any error that `respond` raises. The error may be raised after some pieces were yielded.
        """
        manner = Manner(relationship, style_hint, max_reply_tokens)
        return _texts(
            self._responding.respond_in_parts(
                self, query, manner, meta_data=meta_data, max_tokens=max_tokens, remember=remember
            )
        )

    def respond_in_parts(self, query: str, *, remember: bool = True) -> AsyncGenerator[Recall | str | Response, None]:
        """Yield the memories in the LLM's prompt, then the pieces of the answer, and finally the `Response`.

        If ``remember`` is true, the exchange is stored before the `Response` is yielded; see `respond_streaming`.

        Raises:
            MemoryOSError: Any error that `respond` raises. The error may be raised after some pieces were yielded.
        """
        return self._responding.respond_in_parts(
            self, query, Manner(), meta_data=None, max_tokens=None, remember=remember
        )

    @property
    def has_llm(self) -> bool:
        """Whether an LLM is configured, which `respond` requires."""
        return self._responding.has_llm

    async def candidates(self, query: str) -> Candidates:
        """Return the candidate pages for a query, each with all its ranking signals.

        Benchmarks use these signals to tune the ranking.
        """
        retrieving = self._spaces.retrieving
        _, candidates = await retrieving.candidates(self._validation.query(query), self._scope(None))
        return candidates

    async def profile(self) -> ProfileView:
        """Return the user's traits, and the current facts about the user and the assistant."""
        store = self._store
        traits, user_facts, assistant_facts = await asyncio.gather(
            store.traits(), store.facts(FactQuery(About.USER)), store.facts(FactQuery(About.ASSISTANT))
        )
        return ProfileView(traits=most_telling_first(traits), user_facts=user_facts, assistant_facts=assistant_facts)

    async def traits(self) -> list[Trait]:
        """Return the user's traits, sorted by amount of evidence, largest first. Traits of writing style come last."""
        return most_telling_first(await self._store.traits())

    async def past_traits(self) -> list[str]:
        """Return the names (dimensions) of past traits, sorted.

        A past trait was removed from the profile. Its history is still stored.
        """
        return await self._store.user_data.past_traits()

    async def look(self, ids: Sequence[str], *, max_tokens: int | None = None) -> list[MemoryView]:
        """Return the memories with the given ids, each with its evidence and history.

        Args:
            ids: Ids of pages, segments, chains, facts and traits, at most 50. Duplicate ids are ignored.
            max_tokens: Token budget for the texts of all pages together, 100 to 1,000,000. None means 50,000.

        Raises:
            ArgumentError: An argument is not valid, or an id does not exist.
        """
        tokens = inspection.LOOK_TOKENS if max_tokens is None else max_tokens
        check_tokens(tokens)
        now = self._components.clock()
        return await inspection.look(self._store.user_data, ids, tokens, lambda segment: segment.heat(now, self._heat))

    async def learned_from(self, page_id: str) -> Learned:
        """Return the facts and traits that a page supports. If the page does not exist, both lists are empty."""
        return await self._store.user_data.learned_from(page_id)

    async def listed(
        self,
        *,
        tier: str = "",
        topic: str = "",
        state: str = "",
        after: str | datetime = "",
        before: str | datetime = "",
        chain: int | None = None,
        about: str = "",
        cursor: str = "",
        limit: int | None = None,
        source: str = "",
        words: str = "",
        is_by_time: bool = False,
        project: str | None = None,
    ) -> ListPart:
        """Return one part of a list of memories, newest first.

        Args:
            tier: The memories to list: pages (the default), short_term, backlog, mid_term, segments, knowledge (facts),
                profile (traits) or long_term (traits and facts).
            topic: Id of a segment, or part of a segment's keyword; empty means any topic.
            state: current (the default), superseded (only for facts) or archived (only for facts and segments).
            after: Earliest time of the memories, inclusive; empty means no limit.
            before: Latest time of the memories, exclusive; empty means no limit.
            chain: Number of the chain whose pages to list; None means all chains.
            about: user or assistant, for facts only; empty means both.
            cursor: The cursor that the previous call returned; empty means the beginning of the list.
            limit: Maximum number of memories, 1 to 100; None means 20.
            source: Origin of the pages: conversation, tool, web or document; empty means any.
            words: Words that each page must contain; empty means no such filter.
            is_by_time: Whether to sort pages by the time of their dialogue. Otherwise, the page that was added last
                comes first, even if it is from an import of an old dialogue.
            project: Name of a project, to list only its pages and the memories that are based on at least one of them.
                None means any.

        Raises:
            ArgumentError: An argument is not valid.
        """
        request = inspection.list_request(
            tier=tier,
            topic=topic,
            state=state,
            after=after,
            before=before,
            zone=self._settings.zone,
            source=source,
            words=words,
            is_by_time=is_by_time,
            chain=chain,
            about=about,
            project=project,
        )
        return await inspection.listed(
            self._store.user_data, request, cursor, inspection.LISTED if limit is None else limit
        )

    async def page_counts(
        self, first: date, last: date, *, topic: str = "", source: str = "", words: str = ""
    ) -> list[int]:
        """Return the number of pages on each day from ``first`` to ``last``, at most 1,000 days.

        A day begins at midnight in the configured time zone. The filters are those of `listed`.

        Raises:
            ArgumentError: An argument is not valid.
        """
        zone = self._settings.zone
        request = inspection.list_request(
            tier="", topic=topic, state="", after="", before="", zone=zone, source=source, words=words
        )
        return await inspection.page_counts(self._store.user_data, request, first, last, zone)

    async def segments(self) -> list[TitledSegment]:
        """Return the segments that are not archived, each with its heat and its title.

        The segment with the highest `Segment.prominence` comes first: the largest and most used one.
        """
        top = await self._top_segments()
        names = titles([segment for segment, _ in top])
        return [TitledSegment(segment, heat, names[segment.segment]) for segment, heat in top]

    async def topic(self, segment_id: str) -> TopicView:
        """Return a segment with its chains and its heat over time.

        Raises:
            ArgumentError: The id is not the id of a segment, or does not exist.
        """
        names = titles(await self._store.segments())
        return await inspection.topic(
            self._store.user_data,
            segment_id,
            title_of=lambda segment: names.get(segment.segment) or titles([segment])[segment.segment],
            weights=self._heat,
            threshold=self._settings.mid_term_heat_threshold,
            now=self._components.clock(),
        )

    async def correct(
        self,
        memory_id: str,
        *,
        text: str | None = None,
        level: str | None = None,
        reason: str | None = None,
        is_wrong: bool = False,
        is_restored: bool = False,
        is_dry_run: bool = False,
    ) -> Corrected:
        """Correct a fact or trait on behalf of the user, and return the change.

        The previous version stays in the history, and is not learned again from existing pages.

        Exactly one kind of correction is required: ``text`` for a fact, ``level`` or ``reason`` or both for a trait,
        ``is_wrong``, or ``is_restored``.

        Args:
            memory_id: Id of a fact or trait.
            text: The correct text of a fact.
            level: The correct level of a trait: Low, Medium or High; None keeps the level.
            reason: The reason for the trait's level. None keeps the reason if the level stays the same. If the level
                changes, None sets the reason to "Said by the user."
            is_wrong: Whether the fact or trait is wrong and has no replacement.
            is_restored: Whether to undo the last correction, so that the corrected fact or trait is current again.
            is_dry_run: Whether to return the change without making it.

        Raises:
            ArgumentError: The correction is not valid; nothing was changed.
            StorageError: The store could not be written; nothing was changed.
        """
        corrected = await correcting.correct(
            self._store.user_data,
            memory_id,
            self._settings.secret_policy,
            text=text,
            level=level,
            reason=reason,
            is_wrong=is_wrong,
            is_restored=is_restored,
            is_dry_run=is_dry_run,
        )
        if not is_dry_run:
            self._worker.knowledge_changed()
        return corrected

    async def stats(self) -> Stats:
        """Return the state of the memory: the number of memories, the topics, and the state of background work."""
        counts, top = await asyncio.gather(self._store.counts(), self._top_segments())
        is_settled, damaged_pages = await self._worker.is_settled(), await self._worker.damaged_pages()
        # Read this after `is_settled`. If queries change to a new vector space meanwhile, that space must be reported.
        retrieving, move = self._spaces.retrieving, await self._spaces.move()
        embedder = retrieving.embedder
        return Stats(
            counts=counts,
            top_segments=top,
            titles=titles([segment for segment, _ in top]),
            health=self._worker.health,
            is_semantic=embedder is not None,
            is_settled=is_settled,
            damaged_pages=damaged_pages,
            space=embedder.identity if embedder else None,
            move=move,
            recipe=retrieving.recipe,
            llm=await self._llm_stats(),
            only_reads_because=self._store.only_reads_because,
        )

    async def storage(self) -> StorageState:
        """Return where the memory is stored, its size, and the database engine."""
        stores = self._components.stores
        footprint = await anyio.to_thread.run_sync(stores.footprint, self.user_id)
        return StorageState(stores.engine, footprint)

    async def llm_usage(self, days: int) -> list[UsageEntry]:
        """Return the LLM usage of each of the last ``days`` days by purpose, the oldest day first.

        Days without any call are left out.
        """
        first = date.fromisoformat(self._account.today) - timedelta(days=days - 1)
        return await self._store.usage_since(first.isoformat())

    async def export(self, put: Callable[[bytes], object], project: str | None = None) -> Contents:
        """Write the whole memory, or one project of it, in the export format, and return a summary.

        The export contains the memory as it was at one moment, even if the memory changes meanwhile. ``put`` receives
        the export line by line, in another thread.

        Raises:
            StorageError: The memory could not be read, or ``put`` raised this error.
        """
        return await self._store.user_data.export_records(
            lambda records: export_format.write(records, put), project_name(project)
        )

    async def import_file(
        self, path: Path, name: str | None, *, is_dry_run: bool, show: Callable[[str, int], None]
    ) -> ImportReport:
        """Import a file that this program or another program exported, and return the report.

        If the import fails or is cancelled, the pages that were already imported stay stored. To continue, import the
        same file again.

        Args:
            path: The exported file.
            name: The name of the format, one of `transfer.choosing.FORMATS`. None means that the format is recognised
                from the file.
            is_dry_run: Whether items are only counted and not stored.
            show: A function that reports progress. It is called in another thread, with the name of the current step
                and the number of bytes processed in this step.

        Raises:
            ArgumentError: ``name`` is not a format.
            ImportFormatError: The file cannot be used. Nothing was stored.
            StorageError: A transaction failed. The pages of previous transactions stay stored.
        """
        # The importers of all formats are needed for nothing else.
        from memoryos_mcp.transfer.choosing import chosen
        from memoryos_mcp.transfer.importing import Import
        from memoryos_mcp.transfer.stopping import cancellable

        fix = "choose the format of the file, or use memoryos-mcp restore if the file is a backup"
        reader = await anyio.to_thread.run_sync(partial(chosen, path, name, argument="format", if_unknown=fix))

        def prepare(turn: Turn) -> Redaction:
            return redact_turn(turn, self._settings.secret_policy)

        @asynccontextmanager
        async def opening() -> AsyncIterator[Store]:
            yield self._store

        work = Import(opening, path, prepare=prepare, show=cancellable(show), is_dry_run=is_dry_run)
        try:
            return await work.run(reader, self._settings, now=self._components.clock())
        finally:
            if not is_dry_run:
                self._worker.imported()

    async def text_bytes(self) -> Mapping[Tier, int]:
        """Return the number of UTF-8 bytes in the texts of each tier's pages. The call reads every page."""
        return await self._store.user_data.text_bytes()

    async def failures(self) -> Mapping[str, Failure]:
        """Return the last failure of each background loop. The keys are the names of the loops.

        Failures in other processes are included.
        """
        return await self._store.failures()

    async def next_work_at(self) -> datetime | None:
        """Return the time at which the next background work is due. Return None if all work is done.

        If the work is overdue, return the current time. If another process is doing the work, return the current time
        plus the duration of a lease.
        """
        return await self._worker.next_work_at()

    async def waiting(self) -> Pending:
        """Return the counts of pending background work. The call is cheap."""
        return await self._spaces.pending()

    async def topics(self) -> list[str]:
        """Return the keywords of all segments without duplicates.

        The keywords of the segment with the highest `Segment.prominence` come first.
        """
        return list(dict.fromkeys(word for segment, _ in await self._top_segments() for word in segment.keywords))

    async def reconsolidate(self) -> int:
        """Mark all pages that were processed without the LLM, and return their number.

        The LLM processes the marked pages in the background.
        """
        pages = await self._store.mark_degraded(self._components.fallback.name)
        self._worker.redo()
        return pages

    async def analyse(self) -> None:
        """Organise all pending pages, and extract traits from all segments regardless of their heat.

        Raises:
            ModelError: The LLM did not return a usable answer. The background work continues.
            StorageError: Another process is doing the background work, or the store failed.
        """
        await self._worker.analyse()

    async def plan_forgetting(self, selection: Selection) -> DryRun:
        """Count the memories that a selection matches. Return the counts, samples and a handle for `forget`.

        Nothing is forgotten yet.

        Raises:
            ArgumentError: The selection is empty or contradictory, or an id does not exist.
        """
        check_query(selection.query)
        check_results(selection.max_results)
        if selection.query.strip():
            await self._worker.until_loaded()
        return await self._forgetting.plan(selection, self._spaces.retrieving)

    async def forget(self, handle: str) -> ForgetReceipt:
        """Forget the memories that a dry run selected, and return the receipt.

        If the handle was already used, the same receipt is returned again.

        Args:
            handle: The handle that `plan_forgetting` returned.

        Raises:
            ArgumentError: The handle is unknown or expired; nothing was forgotten.
        """
        receipt = await self._forgetting.confirm(handle)
        self._worker.forgot()
        return receipt

    async def kept_copies(self) -> list[str]:
        """Return the names of the backup copies made by restores.

        The copies stay until everything is forgotten or `remove_kept_copies` is called.
        """
        return await self._store.user_data.kept_copies()

    async def remove_kept_copies(self) -> None:
        """Remove the backup copies made by restores. They contain earlier states of the memory.

        Raises:
            StorageError: A backup copy could not be removed.
        """
        await self._store.user_data.remove_kept_copies()

    async def forget_receipts(self) -> list[ForgetReceipt]:
        """Return the receipts of all forget operations, oldest first."""
        return await self._store.user_data.forget_receipts()

    async def close(self) -> None:
        """Stop the background work and close the files. Unfinished work continues when the memory is opened again."""
        await self._responding.close()
        try:
            await self._worker.close()
        finally:
            await self._store.close()

    def _scope(self, project: str | None) -> Scope:
        return Scope(project_name(project), self._settings.project_isolation)

    async def _top_segments(self) -> list[tuple[Segment, float]]:
        """Return each segment with its heat. The segment with the highest `Segment.prominence` comes first."""
        now = self._components.clock()
        segments = sorted(
            await self._store.segments(), key=lambda segment: segment.prominence(now, self._heat.mu_s), reverse=True
        )
        return [(segment, segment.heat(now, self._heat)) for segment in segments]

    async def _llm_stats(self) -> LlmStats | None:
        if self._analyst is self._components.fallback:
            return None
        today, total = await asyncio.gather(self._store.usage(self._account.today), self._store.usage(None))
        return LlmStats(name=self._analyst.name, today=today, total=total)


async def _texts(parts: AsyncGenerator[Recall | str | Response, None]) -> AsyncGenerator[str, None]:
    async with aclosing(parts):
        async for part in parts:
            if isinstance(part, str):
                yield part
