"""Fills a memory of LlamaIndex with the block of docs/frameworks.md: `llama_index_block.py store|find`."""

import asyncio
import sys

from llama_index.core.llms import ChatMessage
from llama_index.core.memory import Memory
from recipe import PagesBlock

from memoryos_mcp import MemoryEngine


async def main():
    async with MemoryEngine.open("ada") as engine:
        memory = Memory.from_defaults(
            session_id="talk",
            token_limit=60,
            token_flush_size=10,
            chat_history_token_ratio=0.5,
            memory_blocks=[PagesBlock(memory=engine)],
        )
        if sys.argv[1] == "store":
            await memory.aput_messages(
                [
                    ChatMessage(role="user", content="I keep bees on the roof."),
                    ChatMessage(role="assistant", content="How many hives?"),
                ]
            )
            assert (await engine.listed()).entries == []
            await memory.aput(ChatMessage(role="user", content="Two of them. " * 8))
        else:
            await memory.aput(ChatMessage(role="user", content="Where do I keep bees?"))
            shown = await memory.aget()
            assert "I keep bees on the roof." in shown[0].content, shown
            assert shown[0].role == "system"


asyncio.run(main())
