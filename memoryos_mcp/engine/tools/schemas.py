"""JSON schemas of the tools, kept short because every client pays for each character in each conversation."""

from typing import Any

from pydantic import BaseModel

Schema = dict[str, Any]


def input_schema(model: type[BaseModel]) -> Schema:
    """Return the schema of a tool's arguments, each described, without titles.

    An optional argument has only the type of its value. Null is accepted too, but forms and models find a number easier
    to fill in than a choice between a number and null.
    """
    schema = model.model_json_schema()
    asked = {name: _argument(each) for name, each in schema.get("properties", {}).items()}
    required = {"required": schema["required"]} if "required" in schema else {}
    return {"type": "object", "properties": asked, **required}


def output_schema(model: type[BaseModel]) -> Schema:
    """Return the names and types of a result's keys; ``docs/tools.md`` explains them."""
    schema = model.model_json_schema(mode="serialization")
    keys = {name: {"type": _type_name(each)} for name, each in schema["properties"].items()}
    return {"type": "object", "properties": keys, "required": list(keys)}


def _argument(schema: Schema) -> Schema:
    [given] = [one for one in schema.get("anyOf", [schema]) if one != {"type": "null"}]
    argument = {**given, **schema}
    for needless in ("anyOf", "title", "additionalProperties"):
        argument.pop(needless, None)
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
