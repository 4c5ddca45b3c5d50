"""Every text of a configuration that may hold references, read once and checked, for all kinds and consumers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TypeAlias

from pydantic import BaseModel

from perdure.spec.grammar.mounts import NetworkMount
from perdure.spec.interpolation import Address, BadReference, Named, Place, Reference, doubled, pieces
from perdure.spec.layers import Layered
from perdure.spec.models.development import DevEnvironment
from perdure.spec.models.run import RunFields, Task
from perdure.spec.models.service import Service
from perdure.spec.models.standing import Gateway
from perdure.spec.rules.base import Problem, Problems, Rule, looks_at

Text: TypeAlias = tuple[str, str, Place]
"""Path, text, and what kind of text it is."""

_MOST_NAMED = 5


class Texts:
    """The texts of a configuration in pieces, by path, and where a dollar is doubled. Those that are wrong are left
    out: ``RULES`` tell them.

    Args:
        within: fields, if only the texts in these are wanted.
    """

    def __init__(self, configuration: BaseModel, *within: str):
        self._pieces: dict[str, list[str | Reference]] = {}
        self._doubled: list[str] = []
        for fields, texts in _FIELDS.items():
            for path, text, place in texts(configuration) if not within or set(within) & set(fields) else ():
                self._read(configuration, path, text, place)

    def __getitem__(self, path: str) -> list[str | Reference]:
        """The pieces of the text at ``path``; none of a text that is wrong."""
        return self._pieces.get(path, [])

    def __contains__(self, path: str) -> bool:
        """Whether there is such a text, and it is right."""
        return path in self._pieces

    def named(self, namespace: str) -> Iterator[tuple[str, str]]:
        """(path, name) of every reference into the namespace."""
        for path, found in self._pieces.items():
            for piece in found:
                if isinstance(piece, Named) and piece.namespace == namespace:
                    yield path, piece.name

    def warnings(self, layered: Layered) -> tuple[str, ...]:
        """What is read otherwise than a shell would."""
        if not self._doubled:
            return ()
        places = ", ".join(layered.origin(path).path for path in self._doubled[:_MOST_NAMED])
        more = len(self._doubled) - _MOST_NAMED
        where = f"{places} and {more} more" if more > 0 else places
        return (f"$$ is read as one $ in {where}: two are written $$$$, a shell's process id is $BASHPID",)

    def _read(self, configuration: BaseModel, path: str, text: str, place: Place) -> None:
        try:
            self._pieces[path] = _checked(configuration, text, place)
        except BadReference:
            return
        if doubled(text):
            self._doubled.append(path)


def _env(configuration: BaseModel) -> Iterator[Text]:
    if isinstance(configuration, RunFields):
        for name, value in configuration.env.items():
            if isinstance(value, str):
                yield f"env.{name}", value, Place.ENV


def _login(configuration: BaseModel) -> Iterator[Text]:
    if isinstance(configuration, RunFields) and configuration.registry_auth is not None:
        yield "registry_auth.username", configuration.registry_auth.username, Place.LOGIN
        yield "registry_auth.password", configuration.registry_auth.password, Place.LOGIN


def _volumes(configuration: BaseModel) -> Iterator[Text]:
    for index, mount in enumerate(configuration.volumes if isinstance(configuration, RunFields) else ()):
        name = mount.name if isinstance(mount, NetworkMount) else ()
        if isinstance(name, str):
            yield f"volumes[{index}].name", name, Place.VOLUME
        else:
            yield from _listed(f"volumes[{index}].name", name, Place.VOLUME)


def _init(configuration: BaseModel) -> Iterator[Text]:
    if isinstance(configuration, DevEnvironment):
        yield from _listed("init", configuration.init, Place.INIT)


def _commands(configuration: BaseModel) -> Iterator[Text]:
    if isinstance(configuration, Task | Service):
        yield from _listed("commands", configuration.commands, Place.COMMAND)


def _commands_of_groups(configuration: BaseModel) -> Iterator[Text]:
    if isinstance(configuration, Task):
        for index, group in enumerate(configuration.groups or ()):
            yield from _listed(f"groups[{index}].commands", group.commands, Place.COMMAND)
    elif isinstance(configuration, Service):
        field = "groups" if configuration.groups is not None else "replicas"
        for index, group in enumerate(configuration.replica_groups):
            yield from _listed(f"{field}[{index}].commands", group.commands, Place.COMMAND)


def _probes(configuration: BaseModel) -> Iterator[Text]:
    for index, probe in enumerate((configuration.probes or ()) if isinstance(configuration, Service) else ()):
        if probe.url is not None:
            yield f"probes[{index}].url", probe.url, Place.PROBE
        if probe.body is not None:
            yield f"probes[{index}].body", probe.body, Place.PROBE
        for number, header in enumerate(probe.headers):
            yield f"probes[{index}].headers[{number}].value", header.value, Place.PROBE


def _domain(configuration: BaseModel) -> Iterator[Text]:
    if isinstance(configuration, Gateway) and configuration.domain is not None:
        yield "domain", configuration.domain, Place.DOMAIN


_FIELDS: dict[tuple[str, ...], Callable[[BaseModel], Iterator[Text]]] = {
    ("env",): _env,
    ("registry_auth",): _login,
    ("volumes",): _volumes,
    ("init",): _init,
    ("commands",): _commands,
    ("groups", "replicas"): _commands_of_groups,
    ("probes",): _probes,
    ("domain",): _domain,
}
"""Where the texts of these fields are."""


def _rule(fields: tuple[str, ...], texts: Callable[[BaseModel], Iterator[Text]]) -> Rule[BaseModel]:
    @looks_at(*fields)
    def references_are_known(configuration: BaseModel) -> Problems:
        for path, text, place in texts(configuration):
            for bad in islice(_bad(configuration, text, place), _MOST_IN_ONE):
                yield Problem(path, bad.message, bad.hint)

    return references_are_known


RULES = tuple(_rule(fields, texts) for fields, texts in _FIELDS.items())
"""Of every kind, asked at submission. Paths are those of what is parsed: variables are ``env.NAME``."""


_MOST_IN_ONE = 50
"""Mistakes that are told of one text."""


def _bad(configuration: BaseModel, text: str, place: Place) -> Iterator[BadReference]:
    """What is wrong with each of the references in a text; of one that cannot be divided, the first."""
    try:
        found = pieces(text)
    except BadReference as bad:
        yield bad
        return
    for reference in dict.fromkeys(piece for piece in found if not isinstance(piece, str)):
        try:
            _check(configuration, reference, place)
        except BadReference as bad:
            yield bad


def _checked(configuration: BaseModel, text: str, place: Place) -> list[str | Reference]:
    """The pieces of a text.

    Raises:
        BadReference: one is not closed, is not a name, or is not known there.
    """
    found = pieces(text)
    for piece in found:
        if not isinstance(piece, str):
            _check(configuration, piece, place)
    return found


def _listed(path: str, texts: tuple[str, ...], place: Place) -> Iterator[Text]:
    for index, text in enumerate(texts):
        yield f"{path}[{index}]", text, place


def _check(configuration: BaseModel, reference: Reference, place: Place) -> None:
    """
    Raises:
        BadReference: it is not known there.
    """
    if isinstance(reference, Address):
        if place is not Place.COMMAND:
            hint = "a command knows it: set the variable there" if place is Place.ENV else None
            raise BadReference(f"refers to {reference}, which only commands can", hint)
        _check_address(configuration, reference)
    elif not place.knows(reference):
        raise BadReference(
            f"refers to {reference}, which is not known in {place.words}", _instead(reference, place)
        )


def _instead(reference: Named, place: Place) -> str:
    if place is Place.COMMAND and reference.namespace == "env":
        return f"write ${reference.name}: the shell knows it"
    if place is Place.COMMAND and reference.namespace == "secrets":
        name = reference.name.upper().replace("-", "_")
        return f"give it to a variable, env: [{name}=${{{{ secrets.{reference.name} }}}}], and write ${name} here"
    if place is Place.PROBE and reference.namespace == "secrets":
        return "give it to a variable in env, and refer to that: env.NAME"
    if not place.known:
        return "a literal ${{ is written $${{"
    return f"there is {' and '.join(place.known)}; a literal ${{{{ is written $${{{{"


def _check_address(configuration: BaseModel, address: Address) -> None:
    """The group and the node or replica must be there when the run starts."""
    if isinstance(configuration, Task):
        of, sizes = "nodes", [group.nodes for group in configuration.groups or ()]
    elif isinstance(configuration, Service):
        of, sizes = "replicas", [group.size.min or 0 for group in configuration.replica_groups]
    else:
        return
    if not sizes:
        hint = "$DSTACK_NODES_IPS holds the addresses of all nodes" if of == "nodes" else None
        raise BadReference(f"refers to {address}, and there are no groups", hint)
    if address.of != of:
        raise BadReference(f"refers to {address}: the groups here have {of}", f"write {of}[{address.index}]")
    if address.group >= len(sizes):
        last = len(sizes) - 1
        raise BadReference(f"refers to {address}, and the last group is groups[{last}]", "counted from 0")
    if address.index >= sizes[address.group]:
        least = "at least " if of == "replicas" else ""
        count = f"{least}{sizes[address.group]} {of if sizes[address.group] != 1 else of[:-1]}"
        raise BadReference(f"refers to {address}, and groups[{address.group}] has {count}", "counted from 0")
