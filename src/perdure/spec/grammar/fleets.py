"""What only fleets say: how many instances, into how many parts each is divided, and addresses of hosts."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema, model_validator

from perdure.spec.grammar.base import Written, text, told, whole, wrong
from perdure.spec.grammar.forms import Short, scalar
from perdure.spec.grammar.ranges import COUNT, bounds, range_words


class FleetNodes(Written):
    """How many instances: kept, provisioned at once, and at most."""

    min: Annotated[int, Field(ge=0), BeforeValidator(whole)] = 0
    """So many are kept."""

    target: Annotated[int, Field(ge=0), BeforeValidator(whole)] | None = None
    """So many are made when the fleet is applied. Unset: as many as are kept."""

    max: Annotated[int, Field(ge=0), BeforeValidator(whole)] | None = None
    """Never more. Unset: no limit."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.max is not None and self.min > self.max:
            raise wrong(f"begins after it ends: {self.words()}", f"write {range_words(self.max, self.min)}")
        if self.target is not None and not self.min <= self.target <= (
            self.target if self.max is None else self.max
        ):
            raise wrong(f"has a target of {self.target} outside {self.words()}", f"such as target: {self.min}")
        return self

    def words(self) -> str:
        return range_words(self.min, self.max)


Nodes = Annotated[FleetNodes, BeforeValidator(lambda v: bounds(v, whole)), Short(COUNT)]


def read_blocks(value: object) -> int | Literal["auto"]:
    """Into how many equal parts an instance is divided, or ``auto``."""
    if value == "auto":
        return "auto"
    try:
        count = whole(value)
    except ValueError:
        count = 0
    if count < 1 or count > 100_000:
        raise wrong(f"is {told(value)}, where a number of blocks or auto is wanted", "write 1 to 100000, or auto")
    return count


Blocks = Annotated[
    int | Literal["auto"],
    PlainValidator(read_blocks),
    WithJsonSchema(
        scalar("whole number or auto", "integer", "string", pattern=r"\+?[0-9][0-9_]*|auto", examples=["auto"])
        | {"minimum": 1}
    ),
]

_ADDRESS = scalar("private address", "string", examples=["10.0.0.7"])
_NETWORK = scalar("private network", "string", examples=["10.0.0.0/24"])


def private_address(value: object) -> str:
    word = text(value)
    try:
        if ipaddress.ip_address(word).is_private:
            return word
    except ValueError:
        pass
    raise wrong(f"is not a private address: {told(word)}", "such as 10.0.0.7")


def private_network(value: object) -> str:
    word = text(value)
    try:
        if ipaddress.ip_network(word, strict=False).is_private:
            return word
    except ValueError:
        pass
    raise wrong(f"is not a private network: {told(word)}", "such as 10.0.0.0/24")


PrivateAddress = Annotated[str, PlainValidator(private_address), WithJsonSchema(_ADDRESS)]
PrivateNetwork = Annotated[str, PlainValidator(private_network), WithJsonSchema(_NETWORK)]
