"""What somebody who never saw our code reads in the Temporal web UI, in a real browser."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from tests.support.stack import Stack

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture
def page() -> Iterator[Page]:
    assert Path(CHROMIUM).exists(), "the browser is not installed: deploy/test-packages.sh"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser.new_page(viewport={"width": 1400, "height": 1600})
        browser.close()


def test_a_run_reads_as_a_story(stack: Stack, page: Page, tmp_path: Path) -> None:
    stack.environ["PERDURE_TIMING"] = json.dumps({"retry_backoff": [1.0]})
    stack.up()
    marker = Path(f"{stack.home}-failed")
    fail_once = f"if [ $PERDURE_NODE_RANK = 1 ] && ! [ -e {marker} ]; then touch {marker}; exit 7; fi"
    task = {"type": "task", "name": "story", "nodes": 2, "retry": True, "commands": [fail_once, "sleep 1"]}
    stack.home.parent.chmod(0o777)
    path = tmp_path / "story.yml"
    path.write_text(json.dumps(task))
    stack.ok("apply", "-f", str(path), "-y")

    page.set_default_timeout(60_000)
    page.goto(f"{stack.described['ui']}/namespaces/default/workflows/run%2Fmain%2Fstory")
    expect(page.get_by_text("story: node 0 on local-").first).to_be_visible(timeout=60_000)
    expect(page.get_by_text("backoff before the next try").first).to_be_visible()
    expect(page.get_by_text("all_jobs_done").first).to_be_visible()
    page.get_by_text("User Metadata").first.click()
    in_words = [page.frame_locator("iframe").nth(place) for place in range(2)]
    expect(in_words[0].get_by_text("task story").first).to_be_visible()
    expect(in_words[1].get_by_role("cell", name="done_by_runner").first).to_be_visible()
    page.get_by_text("Search Attributes").first.click()
    expect(page.get_by_text("PerdureStatus").first).to_be_visible()
    shot = os.environ.get("PERDURE_SCREENSHOT")
    if shot:
        page.screenshot(path=shot)
