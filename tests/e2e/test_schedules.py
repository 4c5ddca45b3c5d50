"""A schedule on a whole stack, from the command line: its clock, a hand on it, and its end."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.support.stack import Stack

SMALL = {"cpu": "1..", "memory": "0.1GB..", "disk": "1GB.."}
TIME = r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-\d\d-\d\d \d\d:\d\d CES?T"


def test_a_schedule_is_seen_to_from_the_command_line(stack: Stack):
    stack.up()
    path = stack.home.parent / "often.yml"
    schedule = {"cron": "* * * * *", "timezone": "Europe/Berlin"}
    task = {"type": "task", "name": "often", "commands": ["echo began", "sleep infinity"], "resources": SMALL}
    path.write_text(json.dumps({**task, "schedule": schedule}))

    def run() -> dict[str, Any]:
        return json.loads(stack.ok("run", "get", "often", "--json"))

    def occurrences() -> int:
        return len(run()["jobs"])

    applied = stack.run("apply", "-f", str(path), "-y")
    assert applied.returncode == 0, applied.stderr
    assert len(re.findall(rf"^(Next times| {{10}})\s+{TIME}", applied.stderr, re.MULTILINE)) == 5
    assert re.search(rf"It runs next at {TIME}; now, with: perdure run trigger often", applied.stderr)

    assert "is paused" in stack.run("run", "pause", "often").stderr
    stack.run("stop", "often", "--occurrence", "-y")  # in case that its minute came before the pause
    stack.until(lambda: run()["message"].startswith("paused"), what="the pause")
    before = occurrences()
    assert re.search(r"often .*pending .*paused", stack.ok("ps"))
    assert "perdure run resume often" in stack.ok("explain", "often")

    assert "begins" in stack.run("run", "trigger", "often").stderr
    stack.until(lambda: run()["status"] == "running", what="the occurrence by hand")
    assert "never overlap" in stack.refused("run", "trigger", "often")
    assert "Then it waits for the next time of its schedule" in stack.ok("explain", "often")
    stopped = stack.run("stop", "often", "--occurrence", "-y")
    assert "The run is pending; paused; the last one: terminated: stopped by" in stopped.stderr
    assert occurrences() == before + 1
    assert "no occurrence is under way" in stack.refused("stop", "often", "--occurrence", "-y")

    assert "goes on" in stack.run("run", "resume", "often").stderr
    stack.until(lambda: re.search(rf"pending .*next at {TIME}", stack.ok("ps")), what="its next time")
    assert re.search(rf"Its next occurrence begins {TIME}, in", stack.ok("explain", "often"))
    stack.until(lambda: run()["status"] == "running", what="the next minute")
    assert occurrences() == before + 2
    assert "terminated" in stack.run("stop", "often", "-y").stderr
    assert run()["message"].startswith("stopped by ")
    assert "has ended: terminated" in stack.refused("run", "trigger", "often")
