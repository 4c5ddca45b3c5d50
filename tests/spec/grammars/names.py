"""Names, references, users, tags, and the environment."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.spec.grammars.said import Grammar, Said, as_is, mapped, meaning, together, words
from tests.spec.grammars.scalars import texts

BACKENDS = ("aws", "gcp", "azure", "runpod", "vastai", "kubernetes", "lambda", "nebius", "local")


def matching(pattern: str) -> Grammar:
    return as_is(st.from_regex(pattern, fullmatch=True))


resource_names = matching(r"[a-z][a-z0-9-]{0,40}")
group_names = matching(r"[a-z][a-z0-9-]{0,39}")
"""May begin with a digit; these do not, so that none is the number of another group."""

paths = st.lists(
    st.from_regex(r"[a-zA-Z0-9_.-]{1,6}", fullmatch=True).filter(lambda part: set(part) != {"."}), max_size=3
)
absolute_paths = paths.map(lambda parts: "/" + "/".join(parts))
working_dirs = as_is(absolute_paths | absolute_paths.map("~{}".format))
shells = words("sh", "bash", "/bin/zsh", "/usr/bin/fish")
pythons = words("3.9", "3.10", "3.11", "3.12", "3.13", "3.14") | meaning("3.12", 3.12)
backends = words(*BACKENDS) | meaning("remote", "remote", "ssh")


def references() -> Grammar:
    """``name``, ``project/name``, or a mapping."""
    names = st.from_regex(r"[a-z][a-z0-9-]{1,9}", fullmatch=True).filter(
        lambda name: name not in ("on", "off", "yes", "no", "true", "false")
    )

    def forms(project: str, name: str) -> Grammar:
        alone, both = {"project": None, "name": name}, {"project": project, "name": name}
        return meaning(alone, name, {"name": name}, {"name": name, "project": None}) | meaning(
            both, f"{project}/{name}", {"project": project, "name": name}
        )

    return st.tuples(names, names).flatmap(lambda pair: forms(*pair))


def users() -> Grammar:
    """``name_or_id[:group_name_or_id]``."""
    one = st.integers(0, 70_000).map(str) | st.from_regex(r"[a-z_][a-z0-9_-]{0,8}", fullmatch=True)
    pair = st.tuples(one, one).map(":".join)
    return as_is(one | pair) | st.integers(0, 70_000).map(lambda n: Said(n, str(n)))


def tags() -> Grammar:
    keys = st.from_regex(r"[a-zA-Z0-9_-]{1,60}", fullmatch=True)
    values = matching(r"[a-zA-Z0-9 .:/=_\-+@]{0,256}") | st.integers(0, 10**6).map(lambda n: Said(n, str(n)))
    return _dictionary(keys, values, most=3)


_VARIABLES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)


def environments(values: Grammar | None = None) -> Grammar:
    """A list of ``NAME=value`` and ``NAME``, or a map."""
    values = values or texts()
    lists = st.dictionaries(_VARIABLES, values | st.none(), max_size=4).map(
        lambda found: Said(
            [name if said is None else f"{name}={said.written}" for name, said in found.items()],
            {name: {"key": name} if said is None else said.meaning for name, said in found.items()},
        )
    )
    supplied = mapped({"key": as_is(_VARIABLES)})
    keys = _VARIABLES | st.sampled_from(["A-B", "a.b", "1"])
    return lists | _dictionary(keys, values | supplied, most=4)


def _dictionary(keys: st.SearchStrategy[str], values: Grammar, most: int) -> Grammar:
    return st.dictionaries(keys, values, max_size=most).map(together)
