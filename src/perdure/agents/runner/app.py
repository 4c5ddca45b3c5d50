"""The runner's HTTP API. Shapes are those of ``perdure.agents.protocol``."""

from __future__ import annotations

import hashlib
import os
import re

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from perdure.agents import http
from perdure.agents.instance import Instance
from perdure.agents.protocol import PROTOCOL_VERSION, Health, RunnerState, StopBody, SubmitBody
from perdure.agents.runner.job import Job
from perdure.agents.runner.logs import Log

_SHA256 = re.compile(r"[0-9a-f]{64}")


class RunnerApi:
    def __init__(self, instance: Instance, job: Job, log: Log):
        self._instance = instance
        self._job = job
        self._log = log

    def app(self) -> http.Door:
        """The ASGI application."""
        routes = [
            Route("/api/healthcheck", self.healthcheck),
            Route("/api/submit", self.submit, methods=["POST"]),
            Route("/api/upload_archive/{sha256}", self.upload_archive, methods=["POST"]),
            Route("/api/run", self.run, methods=["POST"]),
            Route("/api/state", self.state),
            Route("/api/logs", self.logs),
            Route("/api/stop", self.stop, methods=["POST"]),
            Route("/api/ack", self.ack, methods=["POST"]),
        ]
        return http.Door(Starlette(routes=routes, exception_handlers={HTTPException: http.refused}), self._instance)

    async def healthcheck(self, request: Request) -> Response:
        return http.answer(
            Health(service="perdure-runner", version=PROTOCOL_VERSION, instance_id=self._instance.instance_id)
        )

    async def submit(self, request: Request) -> Response:
        await self._job.submit(await http.body(request, SubmitBody))
        return http.done()

    async def upload_archive(self, request: Request) -> Response:
        """Into a file beside its final name, hashed on the way."""
        sha256 = request.path_params["sha256"]
        if not _SHA256.fullmatch(sha256):
            raise HTTPException(400, "The archive's name is not a SHA-256.")
        state = self._job.state().state
        if state is RunnerState.WAIT_SUBMIT:
            raise HTTPException(409, "No job has been submitted.")
        target = self._job.archive(sha256)
        if state is not RunnerState.WAIT_RUN or target.exists():
            return http.done()
        target.parent.mkdir(mode=0o700, exist_ok=True)
        temporary = target.with_name(f".{sha256}.{id(request)}")
        digest = hashlib.sha256()
        try:
            with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                async for chunk in request.stream():
                    digest.update(chunk)
                    file.write(chunk)
            if digest.hexdigest() != sha256:
                raise HTTPException(400, "The archive's bytes do not have the SHA-256 it is named by.")
            temporary.rename(target)
        finally:
            temporary.unlink(missing_ok=True)
        return http.done()

    async def run(self, request: Request) -> Response:
        return http.answer(await self._job.run())

    async def state(self, request: Request) -> Response:
        wait = http.number(request, "wait", 0, http.MAX_WAIT)
        return http.answer(await self._job.changed(request.query_params.get("seen", ""), wait))

    async def logs(self, request: Request) -> Response:
        offset = int(http.number(request, "offset", 0, 2**62))
        wait = http.number(request, "wait", 0, http.MAX_WAIT)
        if offset > self._log.length():
            raise HTTPException(416, f"The log has {self._log.length()} bytes.")
        content, length, complete = await self._log.read(offset, wait)
        headers = {
            "X-Perdure-State": self._job.state().state.value,
            "X-Perdure-Log-Length": str(length),
            "X-Perdure-Log-Complete": str(int(complete)),
        }
        return Response(content, media_type="application/octet-stream", headers=headers)

    async def stop(self, request: Request) -> Response:
        return http.answer(await self._job.stop(await http.body(request, StopBody, optional=True)))

    async def ack(self, request: Request) -> Response:
        await self._job.acknowledge()
        return http.done()
