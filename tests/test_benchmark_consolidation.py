"""The benchmark's LLM, asked with our own prompts over HTTP."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

import pytest

from benchmarks.llm_server import MODEL, LlmServer, fact_of, running_llm_server
from memoryos_mcp.config import Settings
from memoryos_mcp.errors import ModelError
from memoryos_mcp.knowledge import AddFact, ConfirmFact, Fact, Lessons
from memoryos_mcp.llm import PageView, Surroundings
from memoryos_mcp.llm.analyst import LlmAnalyst
from memoryos_mcp.llm.chat import ChatRequest, Purpose
from memoryos_mcp.llm.extractive import ExtractiveAnalyst
from memoryos_mcp.llm.openai_chat import OpenAIChat
from memoryos_mcp.llm.prompts import learn_request, organise_request
from memoryos_mcp.llm.providers import endpoint_of
from memoryos_mcp.pages import Page, Tier, estimate_tokens
from tests.fakes import START
