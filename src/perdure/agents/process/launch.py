"""The last step before the user's command, inside the sandbox: become the job's user, and then the job.

Started as a file, ``python -S -E -I launch.py SPEC_FD STATUS_FD``. Every job waits for it, so it imports next to
nothing; and nothing at all once it is another user, who may not be able to read it.
"""

import _signal  # pyright: ignore[reportMissingImports]  (``signal`` would import enum)
import errno
import marshal
import os
import resource
import sys

_STRING_LIMIT = 128 * 1024
"""Linux: MAX_ARG_STRLEN, the longest single argument or variable."""


def launch(spec: dict, status: int) -> None:
    """Become the job's user and then the job. Says on ``status`` that it came so far, and what went wrong."""
    default_signals()
    os.set_inheritable(status, False)
    os.write(status, b"S")
    try:
        _unlimited_memlock()
        if spec["uid"] is not None:
            os.setgroups(spec["groups"])
            os.setgid(spec["gid"])
            os.setuid(spec["uid"])
        os.umask(0o022)
        os.chdir(spec["cwd"])
    except OSError as error:
        _give_up(status, 126, f"cannot enter the working directory {spec['cwd']}: {error.strerror}")
    argv, env = spec["argv"], spec["env"]
    try:
        _exec(argv, env)
    except FileNotFoundError:
        _give_up(status, 127, f"command not found: {argv[0]}")
    except OSError as error:
        if error.errno == errno.E2BIG:
            _give_up(status, 126, _too_big(argv, env))
        _give_up(status, 126, f"cannot run {argv[0]}: {error.strerror}")
    except ValueError as error:
        _give_up(status, 126, f"cannot run {argv[0]}: {error}")


def _unlimited_memlock() -> None:
    """GPUs and fast networks pin memory. Where it is not permitted, the host's limit stays."""
    try:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except (ValueError, OSError):
        return


def _exec(argv: list, env: dict) -> None:
    """As ``os.execvpe``, which would import more, and the job's user may not be able to read it."""
    if "/" in argv[0]:
        os.execve(argv[0], argv, env)
    refused = None
    for folder in env.get("PATH", os.defpath).split(":"):
        path = f"{folder or '.'}/{argv[0]}"
        try:
            os.execve(path, argv, env)
        except (FileNotFoundError, NotADirectoryError):
            pass
        except PermissionError as error:
            if os.path.lexists(path):  # and not only a folder that its user may not enter
                refused = refused or error
    raise refused or FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))


def _give_up(status: int, code: int, message: str) -> None:
    os.write(2, f"perdure: {message}\n".encode())
    os.write(status, b"E" + message.encode()[:1500])
    os._exit(code)


def _too_big(argv: list, env: dict) -> str:
    for name, value in env.items():
        size = len(os.fsencode(f"{name}={value}")) + 1
        if size > _STRING_LIMIT:
            return (
                f"the environment variable {name} has {size // 1024} KiB, and this host's limit for one is "
                f"{_STRING_LIMIT // 1024} KiB: pass it in a file"
            )
    size = sum(len(os.fsencode(word)) for word in (*argv, *env, *env.values()))
    return (
        f"the environment and the command have {size // 1024} KiB, more than this host allows: pass data in files"
    )


def default_signals() -> None:
    """As a program expects them at its start: Python ignores some."""
    names = ("SIGTERM", "SIGINT", "SIGHUP", "SIGPIPE", "SIGCHLD", "SIGXFSZ")
    for name in names:
        _signal.signal(getattr(_signal, name), _signal.SIG_DFL)


if __name__ == "__main__":
    with open(int(sys.argv[1]), "rb") as _file:  # noqa: PTH123
        _spec = marshal.load(_file)
    launch(_spec, int(sys.argv[2]))
