"""The command line. ``main`` is the program; everything else is imported when a command needs it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit: 0 well, 1 an error told in one sentence, 2 wrong usage, 130 interrupted."""
    from perdure.cli import streams

    streams.prepare()
    from perdure.cli.program import finish, run

    code = finish(run(list(sys.argv[1:] if arguments is None else arguments)))
    with suppress(OSError, ValueError):
        sys.stderr.flush()
    # Not sys.exit: Temporal's threads may still call back while the interpreter is torn down, which then aborts
    # (seen: "PyGILState_Release: thread state must be current"), and the exit code with it.
    os._exit(code)


if __name__ == "__main__":
    main()
