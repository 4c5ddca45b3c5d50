"""A written value and its meaning, and how those of parts become those of wholes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from hypothesis import strategies as st


@dataclass(frozen=True)
class Said:
    """One value: how it is written, and what it means."""

    written: Any
    meaning: Any


Grammar: TypeAlias = st.SearchStrategy[Said]


def as_is(values: st.SearchStrategy[Any]) -> Grammar:
    """What is written is what is meant."""
    return values.map(lambda value: Said(value, value))


def words(*known: str) -> Grammar:
    """One of a closed list of words."""
    return as_is(st.sampled_from(known))


def spelt(values: st.SearchStrategy[Any], *spellings: Callable[[Any], Any]) -> Grammar:
    """A value in any of its spellings."""
    return st.builds(lambda value, spell: Said(spell(value), value), values, st.sampled_from(spellings))


def meaning(meant: Any, *forms: Any) -> Grammar:
    """One meaning that can be written in any of these forms."""
    return st.sampled_from([Said(form, meant) for form in forms])


def listed(item: Grammar, least: int = 0, most: int = 3) -> Grammar:
    """A list of them."""
    return st.lists(item, min_size=least, max_size=most).map(
        lambda items: Said([one.written for one in items], [one.meaning for one in items])
    )


def in_a_row(items: Sequence[Grammar]) -> Grammar:
    """A list of one of each."""
    return st.tuples(*items).map(lambda found: Said([one.written for one in found], [one.meaning for one in found]))


def mapped(required: Mapping[str, Grammar], optional: Mapping[str, Grammar] | None = None) -> Grammar:
    """A mapping with these keys."""
    return st.fixed_dictionaries(dict(required), optional=dict(optional or {})).map(together)


def some_of(fields: Mapping[str, Grammar], most: int) -> Grammar:
    """A mapping with a few of these keys: cheaper to draw than to decide about each."""
    names = st.lists(st.sampled_from(sorted(fields)), unique=True, max_size=most)
    return names.flatmap(lambda chosen: mapped({name: fields[name] for name in chosen}))


def joined(*parts: Grammar) -> Grammar:
    """Mappings as one; later ones win."""
    return st.tuples(*parts).map(
        lambda found: Said(
            {name: value for said in found for name, value in said.written.items()},
            {name: value for said in found for name, value in said.meaning.items()},
        )
    )


def together(fields: Mapping[str, Said]) -> Said:
    """A mapping of values as one value."""
    return Said(
        {name: said.written for name, said in fields.items()}, {name: said.meaning for name, said in fields.items()}
    )


def unmeant(found: Any, meant: Any, path: str = "") -> str | None:
    """Where what was found is not what was meant, in words; None if nowhere."""
    if isinstance(meant, dict) and isinstance(found, dict):
        for name, value in meant.items():
            if name not in found:
                return f"{path}.{name} is not there"
            if (difference := unmeant(found[name], value, f"{path}.{name}")) is not None:
                return difference
        return None
    if isinstance(meant, list | tuple) and isinstance(found, list | tuple) and len(meant) == len(found):
        differences = (unmeant(*pair, f"{path}[{n}]") for n, pair in enumerate(zip(found, meant, strict=True)))
        return next((difference for difference in differences if difference is not None), None)
    return (
        None
        if found == meant and isinstance(found, bool) == isinstance(meant, bool)
        else f"{path}: {found!r} is not {meant!r}"
    )
