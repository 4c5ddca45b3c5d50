"""``perdure explain``."""

from __future__ import annotations

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from perdure.cli.session import with_client
from perdure.cli.terminal import out, print_json, visible
from perdure.cli.words import STYLES, duration
from perdure.model.api import Attempt, Spell, Story, StoryLine


def show(project: str, name: str, *, json: bool) -> None:
    story = with_client(lambda client: client.story(project, name))
    if json:
        print_json(story)
        return
    _print(story)


def _print(story: Story) -> None:
    out().print(Text(visible(story.headline), STYLES.get(story.status, "bold")))
    for said in story.beginning:
        out().print(Text(visible(said)))
    several = len({it.replica for it in story.attempts}) > 1
    for attempt in story.attempts:
        out().print()
        _print_attempt(attempt, several)
    out().print()
    out().print(Text("What happens next", "bold"))
    for said in story.next:
        _print_indented(Text(visible(said)))


def _print_attempt(attempt: Attempt, several: bool) -> None:
    of = f" of replica {attempt.replica}" if several else ""
    title = Text(f"Attempt {attempt.submission}{of}", "bold")
    title.append(f"  {attempt.began_at.astimezone():%d %b %H:%M:%S}", "dim")
    out().print(title)
    for line in attempt.lines:
        _print_line(line)
    if attempt.spells:
        _print_indented(Text(f"Time: {', '.join(_spell(it) for it in attempt.spells)}", "dim"))


def _print_line(line: StoryLine) -> None:
    """The time, and the text beside it, which a terminal breaks between words."""
    at = f"{line.at.astimezone():%H:%M:%S}" if line.at is not None else " " * 8
    if not out().is_terminal:
        out().print(Text(f"  {at} {visible(line.text)}"), soft_wrap=True)
        return
    row = Table.grid(padding=(0, 1))
    row.add_column(no_wrap=True, style="dim")
    row.add_column()
    row.add_row(at, Text(visible(line.text)))
    out().print(Padding.indent(row, 2))


def _print_indented(text: Text) -> None:
    if out().is_terminal:
        out().print(Padding.indent(text, 2))
    else:
        out().print(Text("  ") + text, soft_wrap=True)


def _spell(spell: Spell) -> str:
    return f"{spell.phase} {duration(spell.seconds)}" + ("" if spell.over else " so far")
