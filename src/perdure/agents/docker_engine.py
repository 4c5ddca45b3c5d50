"""The Docker Engine API over its socket: the few calls we make, each with a time limit and plain errors.

Plain HTTP instead of a client library: the log has to be read as raw frames, streams must be cut at any moment, and
both are three lines with httpx. Podman's compatible API answers the same calls.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import httpx

DEFAULT_HOST = "unix:///var/run/docker.sock"
CALL_TIMEOUT = 30.0
"""Seconds for calls that do not wait for a job: inspect, list, kill."""

SLOW_TIMEOUT = 300.0
"""Seconds for calls that write layers or copy files: create, start, remove, upload."""

CONNECT_TIMEOUT = 5.0

STREAM_LIMIT = 1 << 20
"""Bytes of a stream read ahead."""


class EngineError(OSError):
    """The engine said no. ``status`` is HTTP's, ``message`` the engine's own words. The host's trouble, as every
    OSError is, for who need not know that there is an engine."""

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status
        self.message = message


class EngineUnreachable(EngineError):
    """No answer: not installed, not running, no permission, or restarting."""

    def __init__(self, host: str, why: str):
        super().__init__(0, f"the container engine at {host} does not answer: {why}")


class Engine:
    """One container engine. Safe to share between tasks of one event loop; close it when done."""

    def __init__(self, host: str = DEFAULT_HOST):
        self.host = host
        self._http = _client(host)

    @classmethod
    def from_environment(cls) -> Engine:
        """The engine that ``DOCKER_HOST`` names (``unix://`` or ``tcp://``), or the system's own."""
        return cls(os.environ.get("DOCKER_HOST") or DEFAULT_HOST)

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Engine:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def info(self) -> dict[str, Any]:
        """What the engine is; the cheapest way to know that it is there.

        Raises:
            EngineUnreachable
        """
        return await self.call("GET", "/info")

    async def call(
        self,
        method: str,
        path: str,
        *,
        params: dict[str, Any] | None = None,
        body: Any = None,
        content: Any = None,
        timeout: float | None = CALL_TIMEOUT,
    ) -> Any:
        """One call; its JSON answer, or None when there is none. ``timeout`` in seconds, None waits for ever.

        Raises:
            EngineError: with the status and the engine's message.
            EngineUnreachable
        """
        limits = httpx.Timeout(timeout, connect=CONNECT_TIMEOUT)
        headers = {"Content-Type": "application/x-tar"} if content is not None else {}
        try:
            answer = await self._http.request(
                method, path, params=params, json=body, content=content, headers=headers, timeout=limits
            )
        except httpx.HTTPError as error:
            raise EngineUnreachable(self.host, _why(error)) from error
        if answer.is_error:
            raise EngineError(answer.status_code, _message(answer.content))
        is_json = answer.headers.get("content-type", "").startswith("application/json")
        return answer.json() if answer.content and is_json else None

    async def head(self, path: str, *, params: dict[str, Any]) -> httpx.Headers | None:
        """The headers of an answer, or None for 404."""
        try:
            answer = await self._http.head(path, params=params, timeout=CALL_TIMEOUT)
        except httpx.HTTPError as error:
            raise EngineUnreachable(self.host, _why(error)) from error
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        if answer.is_error:
            raise EngineError(answer.status_code, f"HEAD {path}: {answer.reason_phrase}")
        return answer.headers

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        params: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """An answer as it comes, raw. No limit on silence (a job may print nothing for days): the caller cuts.

        Raises:
            EngineError, EngineUnreachable: also while it is read.
        """
        limits = httpx.Timeout(None, connect=CONNECT_TIMEOUT)
        try:
            async with self._http.stream(method, path, params=params, headers=headers, timeout=limits) as answer:
                if answer.is_error:
                    raise EngineError(answer.status_code, _message(await answer.aread()))
                yield answer.aiter_raw()
        except httpx.HTTPError as error:
            raise EngineUnreachable(self.host, _why(error)) from error

    @asynccontextmanager
    async def raw(self, path: str, params: dict[str, Any]) -> AsyncIterator[asyncio.StreamReader]:
        """A GET's answer as a plain stream until the engine closes it, which it also does when it dies: the caller
        checks that it has all. HTTP/1.0, because the engine sends each line of a log as a chunk of its own, and
        parsing chunks takes longer than the engine needs to make them (measured: 2.5 times).

        Raises:
            EngineError, EngineUnreachable
        """
        writer = None
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                reader, writer = await self._connect()
            async with asyncio.timeout(CALL_TIMEOUT):
                writer.write(f"GET {path}?{urlencode(params)} HTTP/1.0\r\nHost: engine\r\n\r\n".encode())
                head = await reader.readuntil(b"\r\n\r\n")
            status = int(head.split(None, 2)[1])
            if status != httpx.codes.OK:
                raise EngineError(status, _message(await reader.read()))
            yield reader
        except EngineError:
            raise
        except (OSError, EOFError, TimeoutError) as error:
            raise EngineUnreachable(self.host, str(error) or type(error).__name__) from error
        finally:
            if writer is not None:
                writer.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        scheme, _, address = self.host.partition("://")
        if scheme == "unix":
            return await asyncio.open_unix_connection(address, limit=STREAM_LIMIT)
        name, _, port = address.rpartition(":")
        return await asyncio.open_connection(name, int(port), limit=STREAM_LIMIT)


def _client(host: str) -> httpx.AsyncClient:
    # Raw streams are read: the engine must not compress them.
    headers = {"Accept-Encoding": "identity"}
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=4)
    scheme, _, address = host.partition("://")
    if scheme == "unix":
        transport = httpx.AsyncHTTPTransport(uds=address, limits=limits)
        return httpx.AsyncClient(transport=transport, base_url="http://engine", trust_env=False, headers=headers)
    if scheme in ("tcp", "http"):
        return httpx.AsyncClient(limits=limits, base_url=f"http://{address}", trust_env=False, headers=headers)
    raise EngineUnreachable(host, "DOCKER_HOST must be unix://PATH or tcp://HOST:PORT")


def _why(error: httpx.HTTPError) -> str:
    return str(error) or type(error).__name__


def _message(content: bytes) -> str:
    try:
        answer = json.loads(content)
    except ValueError:
        return content.decode(errors="replace").strip()
    if isinstance(answer, dict) and "message" in answer:
        return str(answer["message"]).strip()
    return str(answer)
