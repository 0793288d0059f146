"""The manifest of an MCP bundle. It describes the server, its command, and the settings that users can enter.

The format is version 0.4 of https://github.com/modelcontextprotocol/mcpb (MANIFEST.md).
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
Remembers your conversations with your assistant: the newest exchanges word for word, older ones by topic, and what it \
has learned about you, each with the exchanges that show it. You can see, correct, forget and export everything.

The memory is one file on this computer. Without an LLM, nothing leaves the computer. With an LLM, conversations are \
sent to the provider that you choose here, under that provider's terms.

The first start downloads about 100 MB of Python packages."""


@dataclass(frozen=True, slots=True)
class UserSetting:
    """An optional setting that the user can enter in the client.

    Attributes:
        name: Key of the setting in the manifest's ``user_config``.
        setting: Name of the corresponding field of `Settings`.
        is_sensitive: Whether the client hides the value and stores it as a secret.
    """

    name: str
    setting: str
    title: str
    description: str
    kind: Literal["string", "directory"] = "string"
    is_sensitive: bool = False

    @property
    def variable(self) -> str:
        """The environment variable from which the server reads the value."""
        return f"{ENV_PREFIX}{self.setting.upper()}"

    @property
    def template(self) -> str:
        """The placeholder, such as ``${user_config.llm_model}``, that the client replaces with the user's value."""
        return f"${{user_config.{self.name}}}"

    def option(self) -> dict[str, Any]:
        """Return the entry for this setting in the manifest's ``user_config``.

        The entry always contains a default. Without a default, clients would pass the text of `template` to the server.
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


USER_SETTINGS = (
    UserSetting(
        "data_folder",
        "data_storage_path",
        "Data folder",
        "Folder that contains the memories. Empty: the folder that all clients on this computer share.",
        kind="directory",
    ),
    UserSetting(
        "user_id",
        "user_id",
        "User",
        "Name of the memory's user. Clients with the same user and folder share one memory.",
    ),
    UserSetting(
        "llm_provider",
        "llm_provider",
        "LLM provider",
        "openai, anthropic, deepseek, qwen, vllm, llama-factory, ollama or llama.cpp. Empty: no LLM, unless a key or "
        "an address is set.",
    ),
    UserSetting("llm_model", "llm_model", "LLM", "Name of the model at that provider."),
    UserSetting(
        "llm_base_url",
        "openai_base_url",
        "LLM address",
        "Address of an OpenAI-compatible API. Empty: the provider's address.",
    ),
    UserSetting(
        "llm_api_key",
        "openai_api_key",
        "LLM key",
        "API key of the provider. Empty: the memory is organised without an LLM.",
        is_sensitive=True,
    ),
)


def manifest(about: Mapping[str, str]) -> dict[str, Any]:
    """Return the manifest as a JSON object.

    ``about`` describes the distribution with the keys ``name``, ``summary``, ``author``, ``license``, ``keywords`` and
    ``python`` (the supported versions of Python).
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
                "env": {each.variable: each.template for each in USER_SETTINGS},
            },
        },
        "tools": [{"name": tool.name, "description": tool.description} for tool in TOOLS],
        "tools_generated": False,
        "prompts": _prompts(),
        "prompts_generated": False,
        "keywords": about["keywords"].split(","),
        "license": about["license"],
        "compatibility": {"platforms": ["darwin", "win32", "linux"], "runtimes": {"python": about["python"]}},
        "user_config": {each.name: each.option() for each in USER_SETTINGS},
    }


def _prompts() -> list[dict[str, Any]]:
    shown = []
    for each in PROMPTS:
        names = [argument.name for argument in each.arguments or []]
        (message,) = prompt(each.name, {name: f"${{arguments.{name}}}" for name in names}).messages
        entry = {"name": each.name, "description": each.description, "text": getattr(message.content, "text", "")}
        shown.append(entry | ({"arguments": names} if names else {}))
    return shown
