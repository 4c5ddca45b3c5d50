"""What is told about a text that is not YAML: the line that must be mended, and how."""

from __future__ import annotations

import pytest

from tests.spec.support import mistakes, task, unreadable

OUT_OF_LINE = "begin in the same column"

MENDED = [
    ("type: task\nname: a\n  nodes: 2", 3, 3, "indented too far", "begin it in column 1"),
    ("type: task\n  name: a", 2, 3, "indented too far", "begin it in column 1"),
    ("type: task\ncommands:\n  - a\n    b: c", 4, 5, "indented too far", "needs quotes"),
    ("commands:\n    - a\n  - b\nname: a", 3, 3, "is indented by 2 spaces, where 4 or 0 would fit", OUT_OF_LINE),
    ("resources:\n    cpu: 1\n  gpu: 2", 3, 3, "is indented by 2 spaces, where 4 or 0 would fit", OUT_OF_LINE),
    (
        "type: task\ncommands:\n  - echo\n echo b",
        4,
        2,
        "is indented by 1 space, where 2 or 0 would fit",
        OUT_OF_LINE,
    ),
    (" type: task\nname: a", 2, 1, "is indented by 0 spaces, where 1 would fit", OUT_OF_LINE),
    ("type: task\ncommands:\n  - a\n  name: x", 4, 3, "mixes", "write all of them with `- `, or none"),
    ("type: task\nenv:\n  A: 1\n  - B", 4, 3, "mixes", "write all of them with `- `, or none"),
    ("type:task\nname: x", 1, 6, "has no space after `type:`", "write `type: `"),
    ("type: task\nname:x\ncommands:\n  - a", 2, 6, "has no space after `name:`", "write `name: `"),
    ("type: task\nresources:\n  cpu: 2\n  gpu:1", 4, 7, "has no space after `gpu:`", "write `gpu: `"),
    ("type: task\nresources:\n  gpu:1\n  cpu: 2", 3, 7, "has no space after `gpu:`", "write `gpu: `"),
    ("type: task\ncommands:\n  - a\n  -echo hi", 4, 4, "has no space after `-`", "write `- `"),
    ("type:task", 1, 1, "must be a mapping", "write a space after `type:`"),
    ("type: task\nnodes 2\nimage: x", 2, 1, "has no `: `", "`key: value`"),
    ("type: task\ncommands: - b", 2, 11, "has an item behind a key", "a line of its own"),
    ("type: task\ncommands:\n  - [ -f x ] && y", 3, 5, "begins with [, and goes on after the ]", "'[ -f x ] && y'"),
    ("type: task\ncommands:\n  - [ -f x ] || y", 3, 5, "begins with [, and goes on after the ]", "'[ -f x ] || y'"),
    ("type: task\ncommands:\n  - {a} b", 3, 5, "begins with {, and goes on after the }", "quotes: '{a} b'"),
    ("type: task\ncommands:\n  - [a, b\nname: x", 3, 5, "has a [ that is not closed", "write ]"),
    ("type: task\nports: {a: b\nname: x", 2, 8, "has a { that is not closed", "write }"),
    ('{"type": "task" "name": "x"}', 1, 17, "has no , between two items", "within the { of line 1"),
    ("type: task\ncommands:\n  - a\n}", 4, 1, "has a } that closes nothing", "leave it out"),
    ("type: task\ncommands:\n  - 'echo it's'", 3, 13, "has a quote inside quotes", "write '' for '"),
    ('type: task\ncommands:\n  - "echo "it" "\n  - b', 3, 11, "has a quote inside quotes", 'write \\" for "'),
    ('type: task\ncommands:\n  - "a b" && b', 3, 10, "goes on after its closing quote", "'\"a b\" && b'"),
    ("type: task\nname: 'a' b", 2, 10, "goes on after its closing quote", "put the whole text into quotes"),
    ("type: task\ncommands:\n  - 'abc\nname: x", 3, 5, "has a quote that is not closed", "it begins with"),
    ('type: task\ncommands:\n  - "a\\d"', 3, 7, "has \\d between double quotes", "single quotes"),
    ("type: task\ncommands:\n  - *.py", 3, 5, "begins with *", "quotes: '*.py'"),
    ("type: task\ncommands:\n  - >>x", 3, 5, "begins with >", "quotes: '>>x'"),
    ("type: task\nname: %x", 2, 7, "begins with %", "put the whole text into quotes"),
    ("type: task\ncommands:\n  - if x: y: z", 3, 12, "has a `: ` inside a text", "quotes: 'if x: y: z'"),
    ("type: task\ncommands:\n  -\techo a", 3, 4, "has a tab", "spaces"),
    ("type: task\ncommands:\n  - a\n\xa0\xa0- b\n", 4, 1, "is indented with a no-break space", "plain spaces"),
    ("type: task\nresources:\n\xa0 gpu: 2", 3, 1, "is indented with a no-break space", "plain spaces"),
    ("type: task\nname:\xa0x\nnodes: 2", 2, 6, "has a no-break space after `name:`", "with a plain space"),
]


@pytest.mark.parametrize(("text", "line", "column", "message", "hint"), MENDED)
def test_it_is_told_where_to_mend_it_and_how(text: str, line: int, column: int, message: str, hint: str) -> None:
    error = unreadable(text)
    assert message in error.message
    assert hint in (error.hint or "")
    assert (error.line, error.column) == (line, column)


@pytest.mark.parametrize("text", [text for text, *_ in MENDED])
def test_no_word_of_the_parser_is_told(text: str) -> None:
    error = unreadable(text)
    words = f"{error.message} {error.hint}"
    for word in ("did not find", "expected", "indicator", "token", "context", "scalar", "simple key"):
        assert word not in words


@pytest.mark.parametrize(
    "line", ["TOKEN: @s3cret", "TOKEN:s3cret", "- TOKEN=a: s3cret: b", "TOKEN: 's3cret's", "-s3cret"]
)
def test_no_value_of_a_variable_is_told(line: str) -> None:
    error = unreadable(f"type: task\nenv:\n  {line}\n  A: 1\n")
    assert "s3cret" not in f"{error.message} {error.hint}"


def test_a_list_without_spaces_is_told_to_have_them() -> None:
    (error,) = mistakes(task("files:\n  -a.py\n  -b.py"))
    assert error.hint == "write a space after each `-`"
