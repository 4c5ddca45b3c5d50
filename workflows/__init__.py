"""Durable order: what happens next, and when. Nothing here touches the world; activities do, by name.

====================  ===============================  ============================================
``run.RunWorkflow``   ``run/{project}/{name}``         carries out what ``perdure.core.run`` decides
``job.JobWorkflow``   ``job/{run}/{replica}-{node}/N`` one submission of one job: a straight line
``instance``          ``instance/{uuid}``              written intent to confirmed gone
``fleet``             ``fleet/{project}/{name}``       keeps what the fleet's specification says
``sweep``             a schedule, every minute         finds what nobody owns, tells what nobody heard
====================  ===============================  ============================================
"""

from workflows.fleet import FleetWorkflow
from workflows.instance import InstanceWorkflow
from workflows.job import JobWorkflow
from workflows.run import RunWorkflow
from workflows.sweep import SweepWorkflow

ALL: list[type] = [RunWorkflow, JobWorkflow, InstanceWorkflow, FleetWorkflow, SweepWorkflow]

__all__ = ["ALL", "FleetWorkflow", "InstanceWorkflow", "JobWorkflow", "RunWorkflow", "SweepWorkflow"]
