"""The variables every job finds: each as ``DSTACK_…`` and as ``PERDURE_…`` (``docs/configuration.md``)."""

from __future__ import annotations

from perdure.agents.protocol import SubmitBody


def job_environment(job: SubmitBody, working_dir: str, hostfile: str = "") -> dict[str, str]:
    """The injected variables under the user's own, which win.

    ``working_dir`` and ``hostfile`` are paths as the job sees them.
    """
    nodes = job.node_addresses or ["127.0.0.1"]
    values = {
        "RUN_NAME": job.run_name,
        "RUN_ID": str(job.run_id),
        "JOB_ID": str(job.job_id),
        "REPO_ID": "",
        "REPO_DIR": working_dir,
        "WORKING_DIR": working_dir,
        "GPUS_NUM": str(job.gpus_per_node * len(nodes)),
        "GPUS_PER_NODE": str(job.gpus_per_node),
        "NODES_NUM": str(len(nodes)),
        "NODE_RANK": str(job.node),
        "MASTER_NODE_IP": nodes[0],
        "NODES_IPS": "\n".join(nodes),
        "MPI_HOSTFILE": hostfile,
    }
    environment = {"PYTHONUNBUFFERED": "1"}
    for prefix in ("DSTACK_", "PERDURE_"):
        environment |= {prefix + name: value for name, value in values.items()}
    return environment | job.env


def mpi_hostfile(job: SubmitBody) -> str:
    """The text of an MPI hostfile: one node a line, with its slots if it has GPUs."""
    slots = f" slots={job.gpus_per_node}" if job.gpus_per_node else ""
    return "".join(f"{address}{slots}\n" for address in job.node_addresses or ["127.0.0.1"])
