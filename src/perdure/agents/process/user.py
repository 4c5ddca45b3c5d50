"""Who a process job runs as."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass

from perdure.agents.execution import ExecutionError
from perdure.model.statuses import JobReason

NOBODY = 65534
"""Whom jobs run as when the shim is root and no ``user`` is given."""


@dataclass(frozen=True)
class JobUser:
    """``change`` is False where the job runs as whoever the shim is."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    name: str
    change: bool

    @classmethod
    def of(cls, wanted: str) -> JobUser:
        """For ``user:`` of a configuration: a name or an id, perhaps with ``:group``; empty is the default.

        Raises:
            ExecutionError: no such user, or the shim may not become another.
        """
        me = os.getuid()
        if not wanted:
            uid, gid = (NOBODY, NOBODY) if me == 0 else (me, os.getgid())
            return cls(uid, gid, (gid,), _name(uid), me == 0)
        word, _, group = wanted.partition(":")
        try:
            entry = pwd.getpwuid(int(word)) if word.isdigit() else pwd.getpwnam(word)
            uid, gid, name = entry.pw_uid, entry.pw_gid, entry.pw_name
            groups = tuple(os.getgrouplist(name, gid))
        except KeyError:
            if not word.isdigit():
                raise ExecutionError(JobReason.EXECUTOR_ERROR, f"This host has no user {word}.") from None
            uid, gid, name, groups = int(word), int(word), word, (int(word),)
        if group:
            gid = _group(group)
            groups = (gid,)
        if me not in (0, uid):
            raise ExecutionError(
                JobReason.EXECUTOR_ERROR,
                f"A job cannot run as {wanted} here: Perdure itself runs as {_name(me)}, and only root may change. "
                "Leave `user` out, or name an image.",
            )
        return cls(uid, gid, groups, name, me == 0 and uid != 0)


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _group(word: str) -> int:
    import grp

    if word.isdigit():
        return int(word)
    try:
        return grp.getgrnam(word).gr_gid
    except KeyError:
        raise ExecutionError(JobReason.EXECUTOR_ERROR, f"This host has no group {word}.") from None
