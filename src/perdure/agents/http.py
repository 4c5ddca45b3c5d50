"""Both agents' way of speaking: HTTP on a unix socket, for those who know the token, JSON in, plain errors out."""

from __future__ import annotations

import asyncio
import hmac
import os
import socket
from pathlib import Path
from typing import TypeVar

import uvicorn
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from perdure.agents.instance import Instance

MAX_BODY = 1 << 20
"""Bytes of a JSON body."""

MAX_WAIT = 30.0
"""Longest long poll, in seconds."""

M = TypeVar("M", bound=BaseModel)


class Door:
    """Lets in who has the token of this instance and means this instance."""

    def __init__(self, app: ASGIApp, instance: Instance):
        self._app = app
        self._bearer = f"Bearer {instance.token}".encode()
        self._instance = str(instance.instance_id).encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        if not hmac.compare_digest(headers.get(b"authorization", b""), self._bearer):
            await PlainTextResponse("The token is wrong.\n", 401)(scope, receive, send)
        elif headers.get(b"x-perdure-instance", b"").lower() != self._instance:
            await PlainTextResponse("This is another instance.\n", 421)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


async def refused(request: Request, error: Exception) -> Response:
    """An HTTPException as plain text."""
    assert isinstance(error, HTTPException)
    return PlainTextResponse(f"{error.detail}\n", error.status_code)


async def body(request: Request, model: type[M], *, optional: bool = False) -> M:
    """The JSON body as ``model``; an absent one as its defaults if ``optional``."""
    kind = request.headers.get("content-type")
    if kind and kind.split(";")[0].strip() != "application/json":
        raise HTTPException(415, "The body must be application/json.")
    received = bytearray()
    async for chunk in request.stream():
        received += chunk
        if len(received) > MAX_BODY:
            raise HTTPException(413, "More than 1 MiB: a job's commands and environment together must be smaller.")
    if optional and not received:
        return model()
    try:
        return model.model_validate_json(bytes(received))
    except ValidationError as error:
        raise HTTPException(400, f"The body is not a {model.__name__}: {in_words(error)}") from None


def in_words(error: ValidationError) -> str:
    """Which fields are wrong, and how. Never with what was given: a body holds passwords."""
    found = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(f"{'.'.join(map(str, one['loc'])) or 'body'}: {one['msg']}" for one in found)


def answer(record: BaseModel) -> Response:
    """A record as JSON."""
    return Response(record.model_dump_json(), media_type="application/json")


def done() -> Response:
    """Success with nothing to say."""
    return PlainTextResponse("\n")


def number(request: Request, name: str, default: float, most: float) -> float:
    """A query parameter between 0 and ``most``."""
    try:
        value = float(request.query_params.get(name, default))
    except ValueError:
        raise HTTPException(400, f"{name} is not a number.") from None
    if not value >= 0:
        raise HTTPException(400, f"{name} is negative.")
    return min(value, most)


def listen(path: Path) -> socket.socket:
    """A unix socket of mode 0600 at ``path``, in place of an older one; open for calls when this returns."""
    temporary = path.with_name(f".{os.getpid()}")
    temporary.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    old = os.umask(0o177)
    try:
        listener.bind(str(temporary))
    finally:
        os.umask(old)
    listener.listen(128)
    listener.setblocking(False)
    temporary.rename(path)
    return listener


class Server(uvicorn.Server):
    """Serves until ``leave``; signals are the agents' own business. Idle, it does not wake up at all: there is one
    such process a job, and uvicorn's own loop looks ten times a second."""

    def __init__(self, app: ASGIApp):
        super().__init__(
            uvicorn.Config(
                app,
                http="h11",
                loop="asyncio",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=False,
                timeout_keep_alive=300,
                timeout_graceful_shutdown=1,
            )
        )

        self._over = asyncio.Event()

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        await self._serve(sockets)

    async def main_loop(self) -> None:
        await self._over.wait()

    def leave(self) -> None:
        """Answer who is being answered, for at most a second, and return from ``serve``."""
        self._over.set()


async def call(path: Path, instance: Instance, method: str, target: str, content: bytes, deadline: float) -> bytes:
    """One small call from agent to agent, without the cost of a client library. The body of a 200.

    Raises:
        OSError: no answer.
        TimeoutError: none within ``deadline`` seconds.
        ValueError: another status.
    """
    async with asyncio.timeout(deadline):
        reader, writer = await asyncio.open_unix_connection(str(path))
        try:
            writer.write(
                f"{method} {target} HTTP/1.1\r\nHost: agent\r\nConnection: close\r\n"
                f"Authorization: Bearer {instance.token}\r\nX-Perdure-Instance: {instance.instance_id}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n".encode()
                + content
            )
            received = await reader.read(-1)
        finally:
            writer.close()
    head, _, rest = received.partition(b"\r\n\r\n")
    status = head.split(b"\r\n")[0].split(b" ")
    if len(status) < 2:
        raise ConnectionResetError("The agent hung up.")
    if status[1] != b"200":
        raise ValueError(f"{status[1].decode()}: {rest.decode(errors='replace').strip()}")
    return rest
