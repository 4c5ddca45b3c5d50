"""The shim's HTTP API. Shapes are those of ``perdure.agents.protocol``."""

from __future__ import annotations

from uuid import UUID

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from perdure.agents import http
from perdure.agents.instance import Instance
from perdure.agents.process import sandbox
from perdure.agents.protocol import PROTOCOL_VERSION, Health, TaskConfig, TaskList, Terminate
from perdure.agents.shim.tasks import Tasks


class ShimApi:
    def __init__(self, instance: Instance, tasks: Tasks):
        self._instance = instance
        self._tasks = tasks

    def app(self) -> http.Door:
        """The ASGI application."""
        routes = [
            Route("/api/healthcheck", self.healthcheck),
            Route("/api/tasks", self.list, methods=["GET"]),
            Route("/api/tasks", self.submit, methods=["POST"]),
            Route("/api/tasks/{id}", self.task),
            Route("/api/tasks/{id}/terminate", self.terminate, methods=["POST"]),
            Route("/api/tasks/{id}/remove", self.remove, methods=["POST"]),
        ]
        return http.Door(Starlette(routes=routes, exception_handlers={HTTPException: http.refused}), self._instance)

    async def healthcheck(self, request: Request) -> Response:
        return http.answer(
            Health(
                service="perdure-shim",
                version=PROTOCOL_VERSION,
                instance_id=self._instance.instance_id,
                sandbox="bubblewrap" if sandbox.probe() else "none",
            )
        )

    async def list(self, request: Request) -> Response:
        return http.answer(TaskList(tasks=[task.info() for task in self._tasks.all()]))

    async def submit(self, request: Request) -> Response:
        config = await http.body(request, TaskConfig)
        return http.answer(self._tasks.submit(config).info())

    async def task(self, request: Request) -> Response:
        wait = http.number(request, "wait", 0, http.MAX_WAIT)
        return http.answer(await self._tasks.get(_id(request)).changed(request.query_params.get("seen", ""), wait))

    async def terminate(self, request: Request) -> Response:
        task = self._tasks.get(_id(request))
        return http.answer(await task.terminate(await http.body(request, Terminate, optional=True)))

    async def remove(self, request: Request) -> Response:
        await self._tasks.remove(_id(request))
        return http.done()


def _id(request: Request) -> UUID:
    try:
        return UUID(request.path_params["id"])
    except ValueError:
        raise HTTPException(400, "A task's id is a UUID.") from None
