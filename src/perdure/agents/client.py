"""The worker's way to agents: typed calls over unix sockets, pooled, every one with a deadline."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar
from uuid import UUID

import httpx
from pydantic import BaseModel, ValidationError

from perdure.agents.protocol import (
    Health,
    JobState,
    RunAnswer,
    StopBody,
    SubmitBody,
    TaskConfig,
    TaskInfo,
    TaskList,
    Terminate,
)
from perdure.model.errors import AgentRefused, AgentUnreachable

CALL = 9.0
"""Deadline of a call, in seconds, beyond what it was asked to wait."""

UPLOAD = 60.0
"""Longest silence during an upload, in seconds."""

_CHUNK = 1 << 20
_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Sockets of this machine need none, and httpx would load every certificate authority for each."""

M = TypeVar("M", bound=BaseModel)


class Endpoint(Protocol):
    """Where a shim is; ``perdure.backends.Endpoint`` is one."""

    @property
    def instance_id(self) -> UUID: ...
    @property
    def socket(self) -> str: ...
    @property
    def token(self) -> str: ...


@dataclass(frozen=True)
class LogPage:
    """Bytes of the log from the offset asked for. ``complete``: ``length`` is final."""

    content: bytes
    length: int
    complete: bool
    state: str


class Agents:
    """Every agent a worker talks to: one pool of connections a socket, closed when unused for a minute."""

    def __init__(self) -> None:
        self._pools: dict[tuple[str, str], httpx.AsyncClient] = {}

    async def shim(self, endpoint: Endpoint) -> ShimClient:
        """The shim of an instance."""
        return ShimClient(self._pool(endpoint, endpoint.socket))

    def runner(self, endpoint: Endpoint, socket: str) -> RunnerClient:
        """The runner at ``socket`` (``TaskInfo.runner_socket``) on an instance."""
        return RunnerClient(self._pool(endpoint, socket))

    async def forget(self, endpoint: Endpoint, socket: str) -> None:
        """Close the connections to one socket: the runner is gone."""
        pool = self._pools.pop((socket, endpoint.token), None)
        if pool is not None:
            await pool.aclose()

    async def close(self) -> None:
        """Close all connections."""
        pools, self._pools = list(self._pools.values()), {}
        await asyncio.gather(*(pool.aclose() for pool in pools))

    def _pool(self, endpoint: Endpoint, socket: str) -> httpx.AsyncClient:
        key = (socket, endpoint.token)
        if key not in self._pools:
            self._pools[key] = httpx.AsyncClient(
                base_url="http://agent",
                trust_env=False,
                transport=httpx.AsyncHTTPTransport(
                    uds=socket, verify=_NO_TLS, limits=httpx.Limits(max_connections=None, keepalive_expiry=60)
                ),
                headers={
                    "Authorization": f"Bearer {endpoint.token}",
                    "X-Perdure-Instance": str(endpoint.instance_id),
                },
            )
        return self._pools[key]


class _Client:
    """Every call raises AgentUnreachable (no answer, or a broken agent) or AgentRefused (a clear no)."""

    def __init__(self, http: httpx.AsyncClient):
        self._http = http

    async def healthcheck(self) -> Health:
        """Who answers."""
        return await self._get("/api/healthcheck", Health)

    async def _get(self, path: str, model: type[M], **params: str | float) -> M:
        wait = float(params.get("wait", 0))
        return _read(model, await self._send("GET", path, params=params, deadline=CALL + wait))

    async def _send(
        self,
        method: str,
        path: str,
        *,
        body: BaseModel | None = None,
        content: AsyncIterable[bytes] | None = None,
        params: dict[str, str | float] | None = None,
        deadline: float = CALL,
    ) -> httpx.Response:
        headers = {"Content-Type": "application/json"} if body is not None else None
        try:
            async with asyncio.timeout(deadline if content is None else None):
                response = await self._http.request(
                    method,
                    path,
                    content=body.model_dump_json().encode() if body is not None else content,
                    params=params,
                    headers=headers,
                    timeout=httpx.Timeout(deadline),
                )
        except (httpx.TransportError, TimeoutError) as error:
            what = str(error) or type(error).__name__
            raise AgentUnreachable(f"The agent does not answer: {what}.") from error
        if response.status_code >= 500:
            raise AgentUnreachable(f"The agent failed: {response.text.strip() or response.status_code}")
        if response.status_code >= 400:
            raise AgentRefused(
                response.text.strip() or f"The agent answered {response.status_code}.", status=response.status_code
            )
        return response


class ShimClient(_Client):
    async def tasks(self) -> TaskList:
        """Every task it has."""
        return await self._get("/api/tasks", TaskList)

    async def submit_task(self, task: TaskConfig) -> TaskInfo:
        """Give it a task; again is success."""
        return _read(TaskInfo, await self._send("POST", "/api/tasks", body=task))

    async def task(self, task_id: UUID, *, seen: str = "", wait: float = 0) -> TaskInfo:
        """A task, as soon as its status is not ``seen``, at the latest after ``wait`` seconds."""
        return await self._get(f"/api/tasks/{task_id}", TaskInfo, seen=seen, wait=wait)

    async def terminate(self, task_id: UUID, body: Terminate | None = None) -> TaskInfo:
        """End a task and wait until it has ended."""
        body = body or Terminate()
        response = await self._send(
            "POST", f"/api/tasks/{task_id}/terminate", body=body, deadline=body.timeout + 40 + CALL
        )
        return _read(TaskInfo, response)

    async def remove(self, task_id: UUID) -> None:
        """Forget a terminated task; again is success."""
        await self._send("POST", f"/api/tasks/{task_id}/remove", deadline=40 + CALL)


class RunnerClient(_Client):
    async def submit(self, body: SubmitBody) -> None:
        """Give it the job; again is success."""
        await self._send("POST", "/api/submit", body=body)

    async def upload_archive(self, sha256: str, content: Path | AsyncIterable[bytes]) -> None:
        """Send the archive named by its SHA-256; again is success."""
        stream = _chunks(content) if isinstance(content, Path) else content
        await self._send("POST", f"/api/upload_archive/{sha256}", content=stream, deadline=UPLOAD)

    async def run(self) -> RunAnswer:
        """Start the job, once. Unpacking a big archive takes its time."""
        return _read(RunAnswer, await self._send("POST", "/api/run", deadline=UPLOAD))

    async def state(self, *, seen: str = "", wait: float = 0) -> JobState:
        """The job, as soon as its state is not ``seen``, at the latest after ``wait`` seconds."""
        return await self._get("/api/state", JobState, seen=seen, wait=wait)

    async def logs(self, offset: int, *, wait: float = 0) -> LogPage:
        """Up to 1 MiB of the log; waits up to ``wait`` seconds for a first byte."""
        response = await self._send(
            "GET", "/api/logs", params={"offset": offset, "wait": wait}, deadline=CALL + wait
        )
        headers = response.headers
        return LogPage(
            content=response.content,
            length=int(headers["X-Perdure-Log-Length"]),
            complete=headers["X-Perdure-Log-Complete"] == "1",
            state=headers["X-Perdure-State"],
        )

    async def stop(self, body: StopBody | None = None) -> JobState:
        """Ask the job to end; returns at once."""
        return _read(JobState, await self._send("POST", "/api/stop", body=body or StopBody()))

    async def ack(self) -> None:
        """Say that the result has been recorded."""
        await self._send("POST", "/api/ack")


async def _chunks(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while chunk := await asyncio.to_thread(file.read, _CHUNK):
            yield chunk


def _read(model: type[M], response: httpx.Response) -> M:
    try:
        return model.model_validate_json(response.content)
    except ValidationError as error:
        wrong = ", ".join(".".join(map(str, one["loc"])) for one in error.errors(include_input=False))
        raise AgentUnreachable(f"The agent's answer is not understood: {wrong or 'not JSON'}.") from None
