"""One task as a piece of a notebook: its pictures in a row, round by round, with what was asked and what was said."""

from __future__ import annotations

from plantain.journal import JournalReader, TaskRow
from plantain.report.gallery import THUMBNAIL, story_of
from plantain.report.page import environment


def story_html(reader: JournalReader, task: TaskRow) -> str:
    """HTML with inline styles only and no script: what a notebook shows of a task without trusting anything."""
    story = story_of(reader, task, THUMBNAIL)
    return environment().get_template("notebook.html.j2").render(story=story)
