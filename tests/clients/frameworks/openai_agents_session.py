"""Runs an agent with the session of docs/frameworks.md: `openai_agents_session.py store|find|limits`."""

import asyncio
import sys

from agents import Agent, Runner
from agents.testing import ScriptedModel, assistant_message
from recipe import MemorySession

from memoryos_mcp import MemoryEngine


async def ask(session, text, answer):
    model = ScriptedModel([[assistant_message(answer)]])
    agent = Agent("assistant", instructions="Be brief.", model=model)
    result = await Runner.run(agent, text, session=session, run_config=session.run_config)
    assert result.final_output == answer
    return model.calls[0]


async def pages(memory):
    return len((await memory.listed()).entries)


async def main():
    async with MemoryEngine.open("ada") as memory:
        session = MemorySession("talk", memory)
        match sys.argv[1]:
            case "store":
                await ask(session, "I keep bees on the roof.", "How many hives?")
                assert len(await session.get_items()) == 2
            case "find":
                call = await ask(session, "Where do I keep bees?", "On the roof.")
                assert call.system_instructions.startswith("Be brief.")
                assert "I keep bees on the roof." in call.system_instructions
                assert len(await session.get_items()) == 2
                assert await pages(memory) == 2
            case "limits":
                await ask(session, "I keep bees on the roof.", "How many hives?")
                popped = await session.pop_item()
                assert popped["role"] == "assistant"
                await session.clear_session()
                assert (await session.get_items(), await pages(memory)) == ([], 1)
        session.close()


asyncio.run(main())
