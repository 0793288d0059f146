"""JSON schemas of the tools. They are kept short, because clients send them to the model in every conversation."""

from typing import Any

from pydantic import BaseModel

Schema = dict[str, Any]


def input_schema(model: type[BaseModel]) -> Schema:
    """Return the schema of a tool's arguments, with descriptions but without titles.

    The schema omits null, although optional arguments accept it. Models and clients handle plain types more easily.
    """
    schema = model.model_json_schema()
    properties = {name: _argument(each) for name, each in schema.get("properties", {}).items()}
    required = {"required": schema["required"]} if "required" in schema else {}
    return {"type": "object", "properties": properties, **required}


def output_schema(model: type[BaseModel]) -> Schema:
    """Return a schema with the names and types of a result's keys. ``docs/tools.md`` describes the keys."""
    schema = model.model_json_schema(mode="serialization")
    keys = {name: {"type": _type_name(each)} for name, each in schema["properties"].items()}
    return {"type": "object", "properties": keys, "required": list(keys)}


def _argument(schema: Schema) -> Schema:
    [value_schema] = [one for one in schema.get("anyOf", [schema]) if one != {"type": "null"}]
    argument = {**value_schema, **schema}
    for key in ("anyOf", "title", "additionalProperties"):
        argument.pop(key, None)
    if not argument.get("default"):  # an empty or false default needs no mention
        argument.pop("default", None)
    if "enum" in argument:
        argument["enum"] = [value for value in argument["enum"] if value]
    return argument


def _type_name(schema: Schema) -> str | list[str]:
    if "anyOf" in schema:
        names = [_type_name(one) for one in schema["anyOf"]]
        return [name for name in names if isinstance(name, str)]
    name: str = schema.get("type", "object")
    return name
