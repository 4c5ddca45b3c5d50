"""What appears in a job's file system: volumes, host folders, files and repositories."""

from __future__ import annotations

import posixpath
import re
from typing import Annotated, Literal, cast

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Tag,
    WithJsonSchema,
)

from perdure.spec.grammar.base import Switch, Text, Written, by_form, joined, text, told, wrong
from perdure.spec.grammar.forms import ANY, Short, one_or_more, scalar

_DRIVE = re.compile(r"[a-zA-Z]:[\\/]")
_MOUNT_HINT = "write volume:/path, or /host/path:/path for a host folder"
_ADDRESS = r"\[[0-9a-fA-F:.]*\]"
_TO_THE_PORT = re.compile(rf"[a-zA-Z][a-zA-Z0-9+.-]*://([^/\s]*@)?({_ADDRESS}|[^:/]*)(:[0-9]+(?=[:/]|$))?")
"""Of a URL: scheme, login, host and port. A login goes as far as the last @, whatever a password has in it."""

_TO_THE_OWNER = re.compile(rf"[^/:@]*@({_ADDRESS}|[^/:@]+):")
"""Of what scp takes, too: user and host."""

_LIKE_A_URL = re.compile(r"\w[\w.-]*:[^/@\s]+@[^/@\s]+\.[^/@\s]+/.*")
_REPO_HINT = "write a local path or a URL, and where it goes after a colon: .:/app, https://host/owner/name:/app"


def _given(value: str) -> str:
    if not value:
        raise wrong("is empty", "leave the field out, or write a path")
    return value


GivenText = Annotated[Text, AfterValidator(_given)]
"""A text that is not empty."""


def absolute(value: str) -> str:
    """A clean absolute path in the job."""
    if not value.startswith("/"):
        raise wrong(f"is not an absolute path: {told(value)}", "begin it with /")
    if ".." in value.split("/"):
        raise wrong(f"has .. in it: {told(value)}", "write the path that it leads to")
    return "/" + posixpath.normpath(value).lstrip("/")


AbsolutePath = Annotated[
    Text,
    AfterValidator(absolute),
    WithJsonSchema(scalar("absolute path", "string", pattern=f"/{ANY}*", examples=["/data"])),
]


def _names(value: object) -> str | tuple[str, ...]:
    if not isinstance(value, list | tuple):
        return text(value)
    names = tuple(text(item) for item in cast(list[object], value))
    if not names:
        raise wrong("is empty: at least one volume is wanted", "such as name: my-volume")
    return names


class NetworkMount(Written):
    """A network volume."""

    name: Annotated[
        str | tuple[str, ...],
        BeforeValidator(lambda value: _names(value)),
        WithJsonSchema(one_or_more(scalar("name of a volume", "string", "number", examples=["my-volume"]))),
    ]
    """Of the volume, such as ``my-volume``; of several, the first that is where the instance is."""

    path: AbsolutePath
    """Where it appears in the job."""


class HostMount(Written):
    """A folder of the instance."""

    instance_path: AbsolutePath
    """On the host, such as ``/mnt/data``."""

    path: AbsolutePath
    """Where it appears in the job."""

    optional: Switch = False
    """Go on without it where it cannot be had."""


def mount(value: object) -> object:
    """``volume:/path`` or ``/host:/path`` as a mapping."""
    if not isinstance(value, str):
        return joined(value, ("name", "path", "instance_path", "optional"))
    source, colon, path = value.partition(":")
    if not colon or ":" in path or not source or not path:
        raise wrong(f"is not a mount: {told(value)}", _MOUNT_HINT)
    if "/" in source:
        return {"instance_path": source, "path": path}
    return {"name": source, "path": path}


def _mount_form(value: object) -> str | None:
    if isinstance(value, HostMount) or (isinstance(value, dict) and "instance_path" in value):
        return "<host>"
    return "<network>" if isinstance(value, dict | NetworkMount) else None


Mount = Annotated[
    Annotated[NetworkMount, Tag("<network>")] | Annotated[HostMount, Tag("<host>")],
    by_form(_mount_form, "is not a mount", _MOUNT_HINT),
    BeforeValidator(mount),
    Short(
        scalar(
            "mount",
            "string",
            pattern="[^:]+:/[^:]*",
            hint=_MOUNT_HINT,
            examples=["/mnt/data:/data", "my-volume:/data"],
        )
    ),
]


def file_mapping(value: object) -> object:
    """``local`` or ``local:container`` as a mapping."""
    if not isinstance(value, str):
        return joined(value, ("local_path", "path"))
    drive, rest = (value[:2], value[2:]) if _DRIVE.match(value) else ("", value)
    local, colon, path = rest.partition(":")
    if ":" in path:
        raise wrong(f"is not a file to upload: {told(value)}", "write local/path or local/path:/path/in/job")
    local = drive + local
    if not local or (colon and not path):
        raise wrong("has an empty path", "write local/path or local/path:/path/in/job")
    return {"local_path": local, "path": path if colon else local}


def _posix(value: str) -> str:
    if _DRIVE.match(value):
        raise wrong(f"is not a path in the job: {told(value)}", "say where it goes: C:/data:/data")
    return value


class FileMapping(Written):
    """A local file or folder, and its place in the job."""

    local_path: GivenText
    """On your machine, such as ``data/train.csv``; relative to the configuration's folder."""

    path: Annotated[GivenText, AfterValidator(_posix)]
    """In the job, such as ``/data/train.csv``; relative to the working directory; ``~`` is the job's home."""


FileItem = Annotated[
    FileMapping,
    BeforeValidator(file_mapping),
    Short(scalar("file or folder", "string", pattern=f"{ANY}+", examples=[".:/app", "train.py"])),
]


def repository(value: object) -> object:
    """``local_or_url`` or ``local_or_url:path`` as a mapping.

    A colon divides the two only where it is no part of a URL: neither in its login, nor before its port, nor in an
    address of IPv6; of ``git@host:owner/name``, the first one is part of it.
    """
    if not isinstance(value, str):
        return joined(value, RepoSpec.model_fields)
    if not value:
        raise wrong("is empty", "write a local path or a URL")
    url = _TO_THE_PORT.match(value) or _TO_THE_OWNER.match(value)
    start = url.end() if url else 2 if _DRIVE.match(value) else 0
    rest, colon, path = value[start:].partition(":")
    source = value[:start] + rest
    if colon and (not source or not path or ":" in path):
        raise wrong(f"is not a repository: {told(value)}", _REPO_HINT)
    if not url and _LIKE_A_URL.fullmatch(value):
        # Not repeated: what would be the path may be a token.
        hint = "write https:// in front of it; a folder of such a name is given as local_path"
        raise wrong("is a URL without its beginning", hint)
    mapping: dict[str, object] = {"url" if url else "local_path": source}
    return {**mapping, "path": path} if colon else mapping


def _own_home(value: str) -> str:
    if value.startswith("~") and value != "~" and not value.startswith("~/"):
        raise wrong(f"is in another user's home: {told(value)}", "use ~/ or an absolute path")
    return value


class RepoSpec(Written):
    """A repository, and its place in the job."""

    local_path: GivenText | None = None
    """The folder on your machine, such as ``.``."""

    url: GivenText | None = None
    """Where it is cloned from, such as ``https://github.com/owner/name``."""

    branch: Text | None = None
    """Such as ``main``."""

    hash: Text | None = None
    """Of the commit, such as ``"0a1b2c3d"``."""

    path: Annotated[GivenText, AfterValidator(_own_home)] = "."
    """In the job, such as ``/app``; relative to the working directory."""

    if_exists: Literal["error", "skip"] = "error"
    """What to do where the path holds files already."""


Repo = Annotated[
    RepoSpec,
    BeforeValidator(repository),
    Short(scalar("repository", "string", pattern=f"{ANY}+", examples=[".", "https://github.com/owner/name:/app"])),
]
