"""Hand-overs that are rows, and that nobody acted on: whoever should know is told again."""

from __future__ import annotations

from datetime import UTC, datetime

from activities.sweeping.owners import Owners, Standing
from activities.sweeping.together import together
from activities.world import World
from perdure.model.events import ClaimFailed, ClaimGranted, JobEnded, Nudge
from perdure.model.messages import Finding
from perdure.model.statuses import ClaimStatus
from perdure.store import claims, sweeping
from perdure.store.sweeping import MindedClaim, MindedJob


class UntoldLook:
    def __init__(self, world: World, owners: Owners):
        self.world = world
        self.owners = owners
        self.grace = world.timing.sweep_grace

    async def look(self) -> list[Finding]:
        """Grants without jobs, failures without another try, ends that the run has not said it knows."""
        async with self.world.database.transaction() as tx:
            ended = [job for job in await sweeping.unheard_jobs(tx) if job.age >= self.grace]
            held = [claim for claim in await sweeping.claims(tx) if claim.untold and claim.age >= self.grace]
        return [
            *await together(self._end(job) for job in ended),
            *await together(self._claim(claim) for claim in held),
        ]

    async def _end(self, job: MindedJob) -> list[Finding]:
        if job.reason is None or job.ended_at is None:
            return []
        news = JobEnded(
            run_id=job.key.run_id,
            replica=job.key.replica,
            node=job.key.node,
            submission=job.key.submission,
            status=job.status,
            reason=job.reason,
            exit_status=job.exit_status,
            message=job.message,
            at=job.ended_at,
        )
        return await self._tell(job.owner, news, f"the end of its job {job.key.replica}-{job.key.node}")

    async def _claim(self, claim: MindedClaim) -> list[Finding]:
        async with self.world.database.transaction() as tx:
            answer = await claims.answer(tx, claim.claim_id)
        if answer.status is ClaimStatus.FAILED and claim.ended_at is not None:
            failed = ClaimFailed(
                run_id=claim.run_id,
                claim_id=claim.claim_id,
                at=claim.ended_at,
                message=answer.message,
                tried=answer.tried,
            )
            return await self._tell(claim.owner, failed, "that its claim failed")
        if not answer.status.holds:
            return []
        if len(answer.placements) < claim.nodes:
            failed = ClaimFailed(
                run_id=claim.run_id,
                claim_id=claim.claim_id,
                at=datetime.now(UTC),
                message="an instance of it was lost before its jobs began",
            )
            return await self._tell(claim.owner, failed, "that its claim lost an instance")
        granted = ClaimGranted(
            run_id=claim.run_id,
            claim_id=claim.claim_id,
            placements=answer.placements,
            ready=answer.status is ClaimStatus.READY,
        )
        return await self._tell(claim.owner, granted, f"that its claim is {answer.status.value}")

    async def _tell(self, owner: str, news: JobEnded | ClaimFailed | ClaimGranted, what: str) -> list[Finding]:
        """Nobody, if the run's workflow is not there: then its rows are another look's finding."""
        if await self.owners.standing(owner, news.run_id) is not Standing.OPEN:
            return []
        return [
            Finding(
                kind="untold",
                subject=str(news.run_id),
                message=f"{owner} is told again {what}",
                nudges=(Nudge(workflow_id=owner, news=news),),
            )
        ]
