"""The command line. ``main`` is the program; everything else is imported when a command needs it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit: 0 well, 1 an error told in one sentence, 2 wrong usage, 130 interrupted."""
    from perdure.cli.program import run

    code = run(list(sys.argv[1:] if arguments is None else arguments))
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(code)


if __name__ == "__main__":
    main()
