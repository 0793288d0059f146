"""JSON schemas of the tools as clients are sent them: every client pays for each character in each conversation."""

from typing import Any

from pydantic import BaseModel

Schema = dict[str, Any]


def input_schema(model: type[BaseModel]) -> Schema:
    """Return the schema of a tool's arguments, each described, without titles.

    An argument that may be left out has the type that it has if given: null is accepted too, but for a form or a
    model that fills it in, a choice between a number and null is harder than a number.
    """
    schema = model.model_json_schema()
    asked = {name: _argument(each) for name, each in schema.get("properties", {}).items()}
    required = {"required": schema["required"]} if "required" in schema else {}
    return {"type": "object", "properties": asked, **required}


def output_schema(model: type[BaseModel]) -> Schema:
    """Return the names and types of a result's keys; what they mean and hold is told in ``docs/tools.md``."""
    schema = model.model_json_schema(mode="serialization")
    keys = {name: {"type": _type_name(each)} for name, each in schema["properties"].items()}
    return {"type": "object", "properties": keys, "required": list(keys)}


def _argument(schema: Schema) -> Schema:
    [given] = [one for one in schema.get("anyOf", [schema]) if one != {"type": "null"}]
    argument = {**given, **schema}
    for needless in ("anyOf", "title", "additionalProperties"):
        argument.pop(needless, None)
    if not argument.get("default"):  # what is left out is nothing, or no: that goes without saying
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
