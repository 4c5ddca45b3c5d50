"""The JSON Schema accepts what the parser accepts."""

from __future__ import annotations

import json

import pytest

from perdure import spec


@pytest.mark.parametrize("kind", sorted(spec.KINDS))
def test_each_kind_has_a_schema_with_a_description_of_its_fields(kind: str) -> None:
    schema = spec.json_schema(kind)
    assert schema["properties"]["type"]["const"] == kind
    assert schema["additionalProperties"] is False
    assert "type" in schema["required"]
    assert json.loads(json.dumps(schema)) == schema


def test_the_schema_of_a_task_knows_the_short_forms() -> None:
    properties = spec.json_schema("task")["properties"]
    assert {"type": "integer"} in properties["max_duration"]["anyOf"]
    assert properties["retry"]["description"].startswith("true")
    assert {"const": "off"} in properties["idle_duration"]["anyOf"]


def test_an_unknown_kind_has_none() -> None:
    with pytest.raises(KeyError):
        spec.json_schema("preset")
