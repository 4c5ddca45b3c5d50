"""A small project in Postgres for tests: a fleet, runs, claims, and what a workflow would do with them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import text

from perdure.model.events import Nudge
from perdure.model.ids import job_id
from perdure.model.messages import (
    ClaimAnswer,
    ClaimRequest,
    InstanceLost,
    InstanceReady,
    InstanceView,
    JobEnd,
    JobKey,
    JobRecord,
)
from perdure.model.policy import RunPolicy
from perdure.model.resources import Offer, Requirements, Resources
from perdure.model.statuses import InstanceReason, JobReason, JobStatus
from perdure.spec.effective import EffectiveRun
from perdure.store import claims, ends, fleets, jobs, lives, runs
from perdure.store.database import Database
from perdure.store.fleets import FleetTerms

HERE = Offer(
    backend="local",
    region="local",
    instance_type="local",
    resources=Resources(cpus=2, memory_mib=4096, disk_mib=10240),
    executors=("process",),
)
GPU = Offer(
    backend="cloud",
    region="north",
    instance_type="gpu",
    resources=Resources(cpus=16, memory_mib=65536, disk_mib=204800),
    price=2.0,
)
SMALL = Requirements()


def now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Inventory:
    """What the transactions of a project look like to those who call them. ``told`` is every nudge so far."""

    db: Database
    project: str = "main"
    catalog: list[Offer] = field(default_factory=lambda: [HERE])
    told: list[Nudge] = field(default_factory=list)

    def offers(self, requirements: Requirements) -> Iterable[Offer]:
        return self.catalog

    async def fleet(self, name: str = "local", nodes: tuple[int, int | None] = (0, 4), **terms: Any) -> UUID:
        values: dict[str, Any] = {
            "placement": "cluster",
            "blocks": 1,
            "idle_duration": 300.0,
            "requirements": Requirements(spot=None),
            "configuration": {},
        }
        wanted = FleetTerms(self.project, name, *nodes, **{**values, **terms})
        async with self.db.transaction() as tx:
            view = await fleets.apply(tx, wanted, self.offers)
        self.told += view.nudges
        assert view.fleet_id is not None
        return view.fleet_id

    async def run(self, name: str | None = None, **policy_terms: Any) -> UUID:
        run_id = uuid4()
        policy = RunPolicy(
            run_id=run_id,
            project=self.project,
            name=name or f"r{run_id.hex[:12]}",
            submitted_at=now(),
            **policy_terms,
        )
        async with self.db.transaction() as tx:
            await runs.insert(tx, EffectiveRun(policy=policy))
        return run_id

    async def claim(
        self, run_id: UUID | None = None, claim_id: UUID | None = None, nodes: int = 1, **terms: Any
    ) -> tuple[ClaimRequest, ClaimAnswer]:
        run_id = run_id or await self.run()
        values: dict[str, Any] = {"priority": 0, "requirements": SMALL, "wait": True, "replica": 0, "submission": 0}
        request = ClaimRequest(
            claim_id=claim_id or uuid4(),
            run_id=run_id,
            project=self.project,
            owner=f"run/{self.project}/{run_id}",
            nodes=nodes,
            **{**values, **terms},
        )
        return request, await self.again(request)

    async def again(self, request: ClaimRequest) -> ClaimAnswer:
        async with self.db.transaction() as tx:
            answer = await claims.claim(tx, request, self.offers)
        self.told += answer.nudges
        return answer

    async def withdraw(self, claim_id: UUID) -> tuple[Nudge, ...]:
        async with self.db.transaction() as tx:
            nudges = await claims.withdraw(tx, claim_id, self.offers)
        self.told += nudges
        return nudges

    async def ready(self, instance_id: UUID, address: str = "127.0.0.1") -> InstanceView:
        async with self.db.transaction() as tx:
            view = await lives.ready(tx, InstanceReady(instance_id=instance_id, address=address), self.offers)
        self.told += view.nudges
        return view

    async def lose(self, instance_id: UUID) -> InstanceView:
        news = InstanceLost(instance_id=instance_id, reason=InstanceReason.NO_OFFERS, message="nothing to be had")
        async with self.db.transaction() as tx:
            view = await lives.lost(tx, news, self.offers)
        self.told += view.nudges
        return view

    async def retire(self, instance_id: UUID) -> InstanceView:
        async with self.db.transaction() as tx:
            return await lives.retire(tx, instance_id)

    async def gone(self, instance_id: UUID) -> InstanceView:
        async with self.db.transaction() as tx:
            view = await lives.gone(tx, instance_id, self.offers)
        self.told += view.nudges
        return view

    async def start(self, request: ClaimRequest, instance_id: UUID, node: int = 0) -> JobKey:
        key = self.key(request, node)
        record = JobRecord(
            key=key, claim_id=request.claim_id, instance_id=instance_id, status=JobStatus.RUNNING, at=now()
        )
        async with self.db.transaction() as tx:
            await jobs.record(tx, record)
        return key

    async def end(
        self, request: ClaimRequest, instance_id: UUID, node: int = 0, **changes: Any
    ) -> tuple[Nudge, ...]:
        values: dict[str, Any] = {"status": JobStatus.DONE, "reason": JobReason.DONE_BY_RUNNER, "exit_status": 0}
        end = JobEnd(
            key=self.key(request, node),
            owner=request.owner,
            claim_id=request.claim_id,
            instance_id=instance_id,
            at=now(),
            **{**values, **changes},
        )
        async with self.db.transaction() as tx:
            nudges = await ends.end_job(tx, end, self.offers)
        self.told += nudges
        return nudges

    async def rows(self, query: str, **values: Any) -> list[Any]:
        async with self.db.transaction() as tx:
            return list((await tx.execute(text(query), values)).all())

    async def change(self, statement: str, **values: Any) -> None:
        async with self.db.transaction() as tx:
            await tx.execute(text(statement), values)

    @staticmethod
    def key(request: ClaimRequest, node: int) -> JobKey:
        return JobKey(
            run_id=request.run_id,
            job_id=job_id(request.run_id, request.replica, node, request.submission),
            replica=request.replica,
            node=node,
            submission=request.submission,
        )
