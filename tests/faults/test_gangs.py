"""Multi-node tasks on real processes: one execution, whoever ends first and whenever."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest

from perdure.model.errors import Conflict
from tests.support.registry import free_port
from tests.support.runs import Runs

pytestmark = pytest.mark.asyncio(loop_scope="module")

SMALL = {"cpu": "1..", "memory": "0.1GB..", "disk": "1GB.."}

SERVER = """
import socket, time
server = socket.create_server(("0.0.0.0", {port}))
connection, _ = server.accept()
received = 0
while data := connection.recv(65536):
    received += len(data)
print("received", received)
"""
"""Serves one client, counts what it sends, and ends: what ``iperf3 -s -1`` does."""

CLIENT = """
import os, socket, time
for _ in range(2400):
    try:
        connection = socket.create_connection((os.environ["DSTACK_MASTER_NODE_IP"], {port}), 5)
        break
    except OSError:
        time.sleep(0.05)
end = time.monotonic() + {seconds}
while time.monotonic() < end:
    connection.sendall(b"x" * 65536)
    time.sleep(0.01)
connection.close()
print("sent")
time.sleep({linger})
"""


def ran(work: Path) -> dict[str, int]:
    return {path.name: len(path.read_text().split()) for path in sorted(work.iterdir())}


@pytest.mark.parametrize("retry", [False, True])
@pytest.mark.parametrize("linger", [0.0, 1.5])
async def test_server_and_client_are_one_execution(runs: Runs, work: Path, retry: bool, linger: float) -> None:
    port = free_port()
    server = SERVER.format(port=port)
    client = CLIENT.format(port=port, seconds=1.0, linger=linger)
    command = (
        f"echo ran >> {work}/$DSTACK_NODE_RANK\n"
        f"if [ $DSTACK_NODE_RANK -eq 0 ]; then python3 -c '{server}'; else python3 -c '{client}'; fi"
    )
    run_id = await runs.submit(
        "iperf",
        command,
        nodes=2,
        retry=retry,
        startup_order="master-first",
        stop_criteria="all-done",
        resources=SMALL,
    )
    row = await runs.end(run_id)
    assert row.status == "done", row
    assert ran(work) == {"0": 1, "1": 1}
    assert (await runs.log(row, 0)).startswith(b"received ")
    await runs.at_rest()


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
async def test_nodes_that_end_one_after_the_other_run_once(runs: Runs, work: Path, order: tuple[int, ...]) -> None:
    naps = " ".join(str(0.4 * order.index(node)) for node in range(3))
    command = (
        f"echo ran >> {work}/$PERDURE_NODE_RANK; naps=({naps}); sleep ${{naps[$PERDURE_NODE_RANK]}}; echo over"
    )
    run_id = await runs.submit("order", command, nodes=3, retry=True, resources=SMALL)
    row = await runs.end(run_id)
    assert row.status == "done", row
    assert ran(work) == {"0": 1, "1": 1, "2": 1}
    assert [await runs.log(row, node) for node in range(3)] == [b"over\n"] * 3
    await runs.at_rest()


async def test_master_done_ends_workers_that_would_run_for_ever(runs: Runs, work: Path) -> None:
    others = f"until [ -e {work}/1 -a -e {work}/2 ]; do sleep 0.05; done"
    command = f"touch {work}/$PERDURE_NODE_RANK; if [ $PERDURE_NODE_RANK = 0 ]; then {others}; else sleep 600; fi"
    run_id = await runs.submit("master", command, nodes=3, stop_criteria="master-done", resources=SMALL)
    row = await runs.end(run_id)
    assert row.status == "done"
    assert {job.node: job.status for job in row.jobs} == {0: "done", 1: "terminated", 2: "terminated"}
    await runs.at_rest()


async def test_two_applies_of_one_name_at_once_make_one_run(runs: Runs, work: Path) -> None:
    once = f"echo ran >> {work}/count; until [ -e {work}/gate ]; do sleep 0.05; done; rm {work}/gate"
    await runs.client()
    answers = await asyncio.gather(
        *(runs.submit("twice", once, resources=SMALL) for _ in range(8)), return_exceptions=True
    )
    (work / "gate").touch()
    won = [answer for answer in answers if not isinstance(answer, BaseException)]
    assert len(won) == 1
    assert all(isinstance(answer, Conflict) for answer in answers if isinstance(answer, BaseException))
    assert (await runs.end(won[0])).status == "done"
    assert ran(work) == {"count": 1}
    await runs.at_rest()


async def test_fifty_runs_that_wait_share_four_instances(runs: Runs, work: Path) -> None:
    names = [f"many-{number}" for number in range(50)]
    ids = await asyncio.gather(
        *(runs.submit(name, f"echo ran >> {work}/{name}", retry=True, resources=SMALL) for name in names)
    )
    rows = await asyncio.gather(*(runs.end(run_id) for run_id in ids))
    assert {row.status for row in rows} == {"done"}
    assert ran(work) == dict.fromkeys(sorted(names), 1)
    client = await runs.client()
    [fleet] = await client.fleets("main")
    assert len(fleet.instances) <= 4
    await runs.at_rest()
