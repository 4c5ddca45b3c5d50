"""Who descends from a process. The keeper, which has the standard library alone, uses it as well."""

import os


def descendants(root: int) -> list[int]:
    """Every process below ``root``, parents first."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                    stat = file.read()
            except OSError:
                continue
            children.setdefault(int(stat[stat.rindex(b")") + 2 :].split()[1]), []).append(int(name))
    found = []
    waiting = list(children.get(root, ()))
    while waiting:
        pid = waiting.pop(0)
        found.append(pid)
        waiting += children.get(pid, ())
    return found
