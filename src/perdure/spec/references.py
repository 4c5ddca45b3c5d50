"""Every text of a configuration that may hold references, read once and checked, for all kinds and consumers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from pydantic import BaseModel

from perdure.spec.grammar.mounts import NetworkMount
from perdure.spec.interpolation import Address, BadReference, Named, Place, Reference, doubled, pieces
from perdure.spec.layers import Layered
from perdure.spec.models.development import DevEnvironment
from perdure.spec.models.run import RunFields, Task
from perdure.spec.models.service import Service
from perdure.spec.models.standing import Gateway

Problem: TypeAlias = tuple[str, str, str | None]
"""Path in the configuration as parsed (variables as ``env.NAME``), message, hint."""

_MOST_NAMED = 5


class Texts:
    """The texts in pieces by path, what is wrong with any, and where a dollar is doubled."""

    def __init__(self, configuration: BaseModel):
        self.problems: list[Problem] = []
        self.doubled: list[str] = []
        self._pieces: dict[str, list[str | Reference]] = {}
        for path, text, place in _texts(configuration):
            self._read(configuration, path, text, place)

    def __getitem__(self, path: str) -> list[str | Reference]:
        """The pieces of the text at ``path``; none of a text that is wrong."""
        return self._pieces.get(path, [])

    def named(self, namespace: str) -> Iterator[tuple[str, str]]:
        """(path, name) of every reference into the namespace."""
        for path, found in self._pieces.items():
            for piece in found:
                if isinstance(piece, Named) and piece.namespace == namespace:
                    yield path, piece.name

    def warnings(self, layered: Layered) -> tuple[str, ...]:
        """What is read otherwise than a shell would."""
        if not self.doubled:
            return ()
        places = ", ".join(layered.origin(path).path for path in self.doubled[:_MOST_NAMED])
        more = len(self.doubled) - _MOST_NAMED
        where = f"{places} and {more} more" if more > 0 else places
        return (f"$$ is read as one $ in {where}: two are written $$$$, a shell's process id is $BASHPID",)

    def _read(self, configuration: BaseModel, path: str, text: str, place: Place) -> None:
        try:
            found = pieces(text)
            for piece in found:
                if not isinstance(piece, str):
                    _check(configuration, piece, place)
        except BadReference as bad:
            self.problems.append((path, bad.message, bad.hint))
            return
        self._pieces[path] = found
        if "$$" in text and doubled(text):
            self.doubled.append(path)


def _texts(configuration: BaseModel) -> Iterator[tuple[str, str, Place]]:
    """(path, text, place) of each."""
    match configuration:
        case RunFields():
            yield from _of_run(configuration)
        case Gateway():
            if configuration.domain is not None:
                yield "domain", configuration.domain, Place.DOMAIN
        case _:
            pass


def _of_run(run: RunFields) -> Iterator[tuple[str, str, Place]]:
    for name, value in run.env.items():
        if isinstance(value, str):
            yield f"env.{name}", value, Place.ENV
    if run.registry_auth is not None:
        yield "registry_auth.username", run.registry_auth.username, Place.LOGIN
        yield "registry_auth.password", run.registry_auth.password, Place.LOGIN
    for index, mount in enumerate(run.volumes):
        if isinstance(mount, NetworkMount):
            names = (mount.name,) if isinstance(mount.name, str) else mount.name
            for number, name in enumerate(names):
                path = f"volumes[{index}].name" + ("" if isinstance(mount.name, str) else f"[{number}]")
                yield path, name, Place.VOLUME
    match run:
        case DevEnvironment():
            yield from _listed("init", run.init, Place.INIT)
        case Task():
            yield from _listed("commands", run.commands, Place.COMMAND)
            for index, group in enumerate(run.groups or ()):
                yield from _listed(f"groups[{index}].commands", group.commands, Place.COMMAND)
        case Service():
            yield from _of_service(run)
        case _:
            pass


def _of_service(service: Service) -> Iterator[tuple[str, str, Place]]:
    yield from _listed("commands", service.commands, Place.COMMAND)
    field = "groups" if service.groups is not None else "replicas"
    for index, group in enumerate(service.replica_groups):
        yield from _listed(f"{field}[{index}].commands", group.commands, Place.COMMAND)
    for index, probe in enumerate(service.probes or ()):
        if probe.url is not None:
            yield f"probes[{index}].url", probe.url, Place.PROBE
        if probe.body is not None:
            yield f"probes[{index}].body", probe.body, Place.PROBE
        for number, header in enumerate(probe.headers):
            yield f"probes[{index}].headers[{number}].value", header.value, Place.PROBE


def _listed(path: str, texts: tuple[str, ...], place: Place) -> Iterator[tuple[str, str, Place]]:
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
        raise BadReference(f"refers to {address}, and the last group is groups[{last}]")
    if address.index >= sizes[address.group]:
        least = "at least " if of == "replicas" else ""
        count = f"{least}{sizes[address.group]} {of if sizes[address.group] != 1 else of[:-1]}"
        raise BadReference(f"refers to {address}, and groups[{address.group}] has {count}", "counted from 0")
