"""The manifest of an MCP bundle: the server's description, the settings that the user is asked for, and the command.

The format is version 0.4 of https://github.com/modelcontextprotocol/mcpb (MANIFEST.md). Facts about the package are
read from the package, so that the manifest always agrees with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from memoryos_mcp import __version__
from memoryos_mcp.config import ENV_PREFIX, Settings
from memoryos_mcp.engine.tools.core_tools import TOOLS
from memoryos_mcp.server.guides import PROMPTS, prompt

MANIFEST_VERSION = "0.4"
ENTRY_POINT = "src/server.py"
ICON = "icon.png"
_LONG_DESCRIPTION = """\
Remembers what you and your assistant talked about: the newest exchanges word for word, topics with heat, and what was \
learned of you, each with the exchanges it rests on. You can see, correct, forget and take along all of it.

Everything is kept in one file on this computer. Without an LLM nothing leaves it. With one, the texts to be organised \
are sent to the provider that you choose here, under that provider's terms.

The first start fetches Python packages of about 100 MB."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A setting that the client asks its user for; all are optional.

    Attributes:
        name: The client's key for the answer.
        setting: The setting that gets the answer.
        is_sensitive: Whether the client hides the answer and stores it as a secret.
    """

    name: str
    setting: str
    title: str
    description: str
    kind: Literal["string", "directory"] = "string"
    is_sensitive: bool = False

    @property
    def variable(self) -> str:
        """The environment variable in which the server finds the answer."""
        return f"{ENV_PREFIX}{self.setting.upper()}"

    @property
    def template(self) -> str:
        """The placeholder that the client replaces with the answer."""
        return f"${{user_config.{self.name}}}"

    def option(self) -> dict[str, Any]:
        """Return the manifest's entry.

        It always has a default, even if empty: without one, clients pass the placeholder itself.
        """
        default = Settings.model_fields[self.setting].default
        option: dict[str, Any] = {
            "type": self.kind,
            "title": self.title,
            "description": self.description,
            "required": False,
            "default": default if isinstance(default, str) else "",
        }
        return option | ({"sensitive": True} if self.is_sensitive else {})


ASKED = (
    Asked(
        "data_folder",
        "data_storage_path",
        "Data folder",
        "Where memories are kept. Empty: the folder that other clients on this computer use too.",
        kind="directory",
    ),
    Asked("user_id", "user_id", "User", "Whose memory it is. Clients with the same name and folder share one memory."),
    Asked(
        "llm_provider",
        "llm_provider",
        "LLM provider",
        "openai, anthropic, deepseek, qwen, vllm, llama-factory, ollama or llama.cpp. Empty: no LLM, unless a key or "
        "an address is given.",
    ),
    Asked("llm_model", "llm_model", "LLM", "Name of the model at that provider."),
    Asked("llm_base_url", "openai_base_url", "LLM address", "Of an OpenAI-compatible API. Empty: the provider's own."),
    Asked(
        "llm_api_key",
        "openai_api_key",
        "LLM key",
        "Key of that provider. Empty: the memory is organised without an LLM.",
        is_sensitive=True,
    ),
)


def manifest(about: Mapping[str, str]) -> dict[str, Any]:
    """Return the manifest.

    Args:
        about: The distribution's ``name``, ``summary``, ``author``, ``license``, ``python`` (versions) and
            ``keywords`` (with commas between them).
    """
    return {
        "manifest_version": MANIFEST_VERSION,
        "name": about["name"],
        "display_name": "MemoryOS",
        "version": __version__,
        "description": about["summary"],
        "long_description": _LONG_DESCRIPTION,
        "author": {"name": about["author"]},
        "icon": ICON,
        "server": {
            "type": "uv",
            "entry_point": ENTRY_POINT,
            "mcp_config": {
                "command": "uv",
                "args": ["run", "--directory", "${__dirname}", ENTRY_POINT],
                "env": {each.variable: each.template for each in ASKED},
            },
        },
        "tools": [{"name": tool.name, "description": tool.description} for tool in TOOLS],
        "tools_generated": False,
        "prompts": _prompts(),
        "prompts_generated": False,
        "keywords": about["keywords"].split(","),
        "license": about["license"],
        "compatibility": {"platforms": ["darwin", "win32", "linux"], "runtimes": {"python": about["python"]}},
        "user_config": {each.name: each.option() for each in ASKED},
    }


def _prompts() -> list[dict[str, Any]]:
    told = []
    for each in PROMPTS:
        names = [argument.name for argument in each.arguments or []]
        (message,) = prompt(each.name, {name: f"${{arguments.{name}}}" for name in names}).messages
        shown = {"name": each.name, "description": each.description, "text": getattr(message.content, "text", "")}
        told.append(shown | ({"arguments": names} if names else {}))
    return told
