"""Starts the embedded stack and runs the two examples on it: what `make demo` does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent
PERDURE = Path(sys.executable).parent / "perdure"


def perdure(*arguments: str) -> None:
    """Show a command, run it, and end with its exit code if it fails."""
    print(f"\n$ perdure {' '.join(arguments)}", flush=True)
    code = subprocess.run([PERDURE, *arguments], cwd=EXAMPLES.parent, stdin=subprocess.DEVNULL).returncode
    if code:
        sys.exit(code)


def ui() -> str:
    home = Path(os.environ.get("PERDURE_HOME") or "~/.perdure").expanduser()
    return json.loads((home / "stack.json").read_text())["ui"]


def main() -> None:
    perdure("up", "--detach")
    perdure("apply", "-f", "examples/hello/.perdure.yml", "-y", "--force")
    perdure("apply", "-f", "examples/two-nodes/.perdure.yml", "-y", "--force")
    perdure("logs", "two-nodes", "--job", "1")
    perdure("ps", "-n", "2")
    print(f"\nThe web UI, with every run as a story: {ui()}")
    print("Stop the stack with: .venv/bin/perdure down")


if __name__ == "__main__":
    main()
