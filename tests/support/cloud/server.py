"""The provider's API over HTTP: ``POST /{call}``, JSON in and out; errors are ``{"code", "message"}``."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from perdure.agents.http import Server
from tests.support.cloud.faults import full
from tests.support.cloud.provider import Call, Machine, Provider

Effect = Callable[[], Any]


@asynccontextmanager
async def served(provider: Provider) -> AsyncIterator[str]:
    """Its URL, on this machine."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = Server(Starlette(routes=[Route("/{call}", _Api(provider).answer, methods=["POST"])]))
    serving = asyncio.create_task(server.serve([listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        provider.heal()
        server.leave()
        await serving


class _Api:
    def __init__(self, provider: Provider):
        self._provider = provider

    async def answer(self, request: Request) -> JSONResponse:
        call, said = request.path_params["call"], await request.json()
        about, effect = self._what(call, said)
        self._provider.calls.append(Call(call, about))
        fault = self._provider.script.take(call, about)
        if fault is None and call == "create" and self._provider.is_full(UUID(said["token"])):
            fault = full()
        if fault is None:
            return JSONResponse(effect())
        if fault.done:
            effect()
        if fault.held is not None:
            await fault.held.wait()
        if fault.status is None:
            return JSONResponse(effect())
        return JSONResponse({"code": fault.code, "message": fault.message}, status_code=fault.status)

    def _what(self, call: str, said: dict[str, Any]) -> tuple[str, Effect]:
        """What a call is about, and what it does."""
        provider = self._provider
        match call:
            case "create":
                words = {
                    **said,
                    "token": UUID(said["token"]),
                    "installation": UUID(said["installation"]),
                }
                return said["kind"], lambda: self._told(provider.create(**words))
            case "look":
                return said["token"], lambda: self._told(provider.look(UUID(said["token"])))
            case "terminate":
                return said["token"], lambda: self._told(provider.terminate(UUID(said["token"])))
            case _:
                return "", lambda: [self._told(machine) for machine in provider.all()]

    def _told(self, machine: Machine | None) -> dict[str, Any] | None:
        if machine is None:
            return None
        return {
            "id": machine.id,
            "token": str(machine.token),
            "state": machine.state.value,
            "address": machine.address,
            "installation": str(machine.installation),
            "epoch": machine.epoch,
            "age": self._provider.age(machine),
        }
