"""``up``, ``down`` and what they say, without a word about terminals."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from perdure.agents.identity import Process
from perdure.model.errors import PerdureError
from perdure.stack.home import Home, StackError
from perdure.stack.part import end_leftovers, last_line
from perdure.stack.supervisor import Options, supervise

UP_WITHIN = 120.0
DOWN_WITHIN = 60.0


def up(home: Home, options: Options, say: Callable[[str], None]) -> bool:
    """Hold the stack up in this process until told to stop. False: it is up already.

    Raises:
        StackError
    """
    home.prepare()
    lock = home.lock()
    if lock is None:
        return False
    journal = home.log("supervisor")

    def tell(line: str) -> None:
        with contextlib.suppress(OSError):  # nobody reads it any more, or its disk is full: the work goes on
            say(line)
        with contextlib.suppress(OSError), journal.open("a") as file:
            file.write(f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S} {line}\n")

    supervise(home, lock, options, tell)
    return True


def up_detached(home: Home, options: Options, say: Callable[[str], None]) -> bool:
    """Hold the stack up in a process of its own; returns when it is up. False: it is up already.

    Raises:
        StackError: it does not come up; whatever was started is stopped again.
    """
    home.prepare()
    if home.locked():
        return False
    output = home.run / "up.out"
    with output.open("wb") as file:
        child = subprocess.Popen(
            [sys.executable, "-m", "perdure.stack.control", str(home.path), json.dumps(asdict(options))],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            cwd="/",
            start_new_session=True,
        )
    deadline = time.monotonic() + UP_WITHIN
    shown = 0
    while True:
        ended = child.poll() is not None
        found = home.running()
        up = found is not None and found["up"] and found["pids"]["supervisor"] == child.pid
        lines = output.read_text().splitlines()
        for line in lines[shown:-1] if ended else lines[shown:]:
            say(line)
        shown = len(lines)
        if ended:
            raise StackError(last_line(output) or f"the stack ended at once; see {home.path / 'logs'}")
        if up:
            return True
        if time.monotonic() > deadline:
            child.terminate()
            child.wait()
            raise StackError(f"the stack was not up after {UP_WITHIN:.0f} s", hint=f"see {home.path / 'logs'}")
        time.sleep(0.02)


def down(home: Home, say: Callable[[str], None], *, everything: bool = False, delete_state: bool = False) -> bool:
    """Stop the stack; agents and their jobs go on. False: there was nothing to stop.

    ``everything``: runs are stopped first, and agents with the stack. ``delete_state``: nothing is kept either.

    Raises:
        StackError: something does not stop.
    """
    if delete_state and not everything:
        raise StackError("deleting the state would leave jobs behind that nobody knows of", hint="add --all")
    from perdure.stack import living

    was_up = home.path.exists() and home.locked()
    if was_up:
        _stop_supervisor(home, say, everything, delete_state)
    elif home.path.exists():
        was_up = _stop_leftovers(home, say)
        if everything and not delete_state and (left := living.agents(home)):
            raise StackError(
                f"Perdure is not up, so what runs on {', '.join(left)} cannot be stopped in order",
                hint="start it with `perdure up --detach` first, or end it for good with --all --delete-state",
            )
    if everything and home.path.exists():
        lock = home.lock()
        if lock is None:
            raise StackError("another `perdure up` was faster")
        try:
            living.rest_agents(home) if not delete_state else asyncio.run(living.delete(home))
        finally:
            os.close(lock)
    return was_up


def _stop_supervisor(home: Home, say: Callable[[str], None], everything: bool, delete_state: bool) -> None:
    found = home.running()
    supervisor = Process.model_validate(found["supervisor"]) if found and found["supervisor"] else None
    if supervisor is None or not supervisor.alive:
        raise StackError(f"something else holds {home.path / 'lock'}", hint="is a `perdure up` just starting?")
    from perdure.stack import living

    if everything:
        try:
            asyncio.run(living.stop_runs(home, say))
        except PerdureError as error:
            if not delete_state:
                raise
            say(f"{error.message}; their jobs are ended all the same")
    else:
        try:
            if runs := [run for run in asyncio.run(living.runs(home)) if run.jobs]:
                say(f"these go on running: {', '.join(map(str, runs))}")
        except StackError as error:
            say(error.message)
    supervisor.kill(signal.SIGTERM)
    deadline = time.monotonic() + DOWN_WITHIN
    while supervisor.alive or home.locked():
        if time.monotonic() > deadline:
            raise StackError(f"pid {supervisor.pid} does not stop", hint=f"see {home.log('supervisor')}")
        time.sleep(0.02)


def _stop_leftovers(home: Home, say: Callable[[str], None]) -> bool:
    """What a killed ``perdure up`` left at work."""
    lock = home.lock()
    if lock is None:
        raise StackError("a `perdure up` is just starting")
    try:
        left = end_leftovers(home)
        home.stack_file.unlink(missing_ok=True)
    finally:
        os.close(lock)
    for name in left:
        say(f"stopped the {name} that a killed `perdure up` had left behind")
    return bool(left)


def exports(home: Home) -> dict[str, str]:
    """Variables by which Temporal's own tools find this stack.

    Raises:
        StackError: it is not up.
    """
    found = home.running()
    if found is None or not home.locked():
        raise StackError(f"Perdure is not up ({home.path})", hint="start it with: perdure up --detach")
    return {"TEMPORAL_ADDRESS": found["temporal"], "TEMPORAL_NAMESPACE": found["namespace"]}


def _detached() -> None:
    """The process behind ``up_detached``: every line to stdout, the reason of a failure last."""
    home, options = Home(Path(sys.argv[1])), Options(**json.loads(sys.argv[2]))
    try:
        if not up(home, options, lambda line: print(line, flush=True)):
            raise StackError("another `perdure up` was faster")
    except StackError as error:
        print(error.message + (f" ({error.hint})" if error.hint else ""), flush=True)
        os._exit(1)


if __name__ == "__main__":
    _detached()
