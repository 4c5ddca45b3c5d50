"""Pulling an image: progress in bytes, and a registry's refusals in plain words."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from perdure.agents.docker_engine import Engine, EngineError, EngineUnreachable
from perdure.agents.execution import ExecutionError
from perdure.agents.protocol import PullProgress, TaskConfig
from perdure.model.statuses import JobReason

DEFAULT_REGISTRY = "docker.io"


async def ensure_image(engine: Engine, task: TaskConfig, progress: Callable[[PullProgress], None]) -> None:
    """Pull the task's image, unless the engine holds it and its tag is one that does not move.

    Cancelling cuts the connection, which makes the engine stop pulling.

    Raises:
        ExecutionError: ``creating_container_error``, saying what to mend.
    """
    image = with_tag(task.image_name)
    if not image.endswith(":latest") and await _present(engine, image):
        return
    try:
        async with asyncio.timeout(task.pull_timeout):
            await _pull(engine, task, image, progress)
    except TimeoutError as error:
        raise _failed(f"pulling {image} took longer than {task.pull_timeout:g} s") from error
    except EngineUnreachable as error:
        raise _failed(error.message) from error
    except EngineError as error:
        raise _failed(in_words(image, error.message, bool(task.registry_username))) from error


def with_tag(image: str) -> str:
    """The reference with its tag written out: no tag and no digest is ``latest``."""
    name = image.rpartition("/")[2]
    return image if "@" in image or ":" in name else f"{image}:latest"


def registry_of(image: str) -> str:
    """The registry's host, as an image reference names it."""
    first, slash, _ = image.partition("/")
    return first if slash and ("." in first or ":" in first or first == "localhost") else DEFAULT_REGISTRY


def in_words(image: str, message: str, with_login: bool) -> str:
    """What a registry's refusal means, for the person who wrote the image's name."""
    said = message.lower()
    registry = registry_of(image)

    def any_of(*words: str) -> bool:
        return any(word in said for word in words)

    if any_of("unauthorized", "no basic auth credentials", "authentication required", "incorrect username"):
        if with_login:
            return f"registry {registry} refused the username or password for {image}"
        return f"registry {registry} wants a username and password for {image}: set registry_auth"
    if any_of("pull access denied", "denied:"):
        return f"image {image} does not exist, or registry {registry} wants other credentials: {message}"
    if any_of("not found", "manifest unknown", "name unknown", "does not exist"):
        return f"image {image} does not exist in registry {registry}"
    if any_of("no matching manifest"):
        return f"image {image} has no variant for this machine's architecture: {message}"
    if any_of("toomanyrequests", "rate limit"):
        return f"registry {registry} limits how often images are pulled: {message}"
    if any_of("no space left"):
        return f"the disk is full: {image} cannot be unpacked"
    if any_of("invalid reference format", "must be lowercase"):
        return f"{image!r} is not an image name: {message}"
    if any_of(
        "dial tcp", "no such host", "connection refused", "timeout", "timed out", "unreachable", "tls", "eof"
    ):
        return f"registry {registry} cannot be reached: {message}"
    return f"image {image} cannot be pulled: {message}"


async def _present(engine: Engine, image: str) -> bool:
    try:
        await engine.call("GET", f"/images/{quote(image, safe='/:@')}/json")
    except EngineError as error:
        if error.status in (400, 404):
            return False
        raise _failed(error.message) from error
    return True


async def _pull(engine: Engine, task: TaskConfig, image: str, progress: Callable[[PullProgress], None]) -> None:
    layers = _Layers()
    params = {"fromImage": image}
    async with engine.stream("POST", "/images/create", params=params, headers=_auth(task, image)) as chunks:
        async for event in _events(chunks):
            if "error" in event:
                raise EngineError(500, str(event["error"]))
            if layers.apply(event):
                progress(layers.total())
    progress(layers.finished())


def _auth(task: TaskConfig, image: str) -> dict[str, str]:
    if not task.registry_username and not task.registry_password:
        return {}
    login = {
        "username": task.registry_username,
        "password": task.registry_password,
        "serveraddress": registry_of(image),
    }
    return {"X-Registry-Auth": base64.urlsafe_b64encode(json.dumps(login).encode()).decode()}


async def _events(chunks: AsyncIterator[bytes]) -> AsyncIterator[dict[str, Any]]:
    rest = b""
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line.strip():
                yield json.loads(line)
    if rest.strip():
        yield json.loads(rest)


@dataclass
class _Layer:
    total: int = 0
    downloaded: int = 0
    extracted: int = 0
    done: bool = False


@dataclass
class _Layers:
    """What the engine's events add up to. Small layers finish without ever telling their size: they count as 0."""

    layers: dict[str, _Layer] = field(default_factory=dict)

    def apply(self, event: dict[str, Any]) -> bool:
        """Take one event; whether it was about a layer."""
        name, status = event.get("id"), event.get("status", "")
        detail = event.get("progressDetail") or {}
        if not name or status.startswith("Pulling from"):
            return False
        layer = self.layers.setdefault(name, _Layer())
        current = int(detail.get("current") or 0)
        layer.total = max(layer.total, int(detail.get("total") or 0))
        match status:
            case "Downloading":
                layer.downloaded = max(layer.downloaded, current)
            case "Verifying Checksum" | "Download complete":
                layer.downloaded = layer.total
            case "Extracting":
                layer.downloaded = layer.total
                layer.extracted = max(layer.extracted, current)
            case "Pull complete" | "Already exists":
                layer.downloaded = layer.extracted = layer.total
                layer.done = True
        return True

    def total(self) -> PullProgress:
        known = all(layer.total or layer.done for layer in self.layers.values())
        return PullProgress(
            downloaded_bytes=sum(layer.downloaded for layer in self.layers.values()),
            extracted_bytes=sum(layer.extracted for layer in self.layers.values()),
            total_bytes=sum(layer.total for layer in self.layers.values()),
            is_total_bytes_final=bool(self.layers) and known,
        )

    def finished(self) -> PullProgress:
        for layer in self.layers.values():
            layer.downloaded = layer.extracted = layer.total
            layer.done = True
        return self.total().model_copy(update={"is_total_bytes_final": True})


def _failed(message: str) -> ExecutionError:
    return ExecutionError(JobReason.CREATING_CONTAINER_ERROR.value, message)
