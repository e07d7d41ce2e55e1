"""How each model's limits moved while a build ran, as small pictures. Telemetry: never part of the report itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from plantain.journal import JsonValue, SessionRow
from plantain.pages.drawing import ACCENT, FAILED, RULE, svg

MOST = 8
"""Pictures on the page, of the latest processes."""

KINDS = {"requests_per_minute": "requests a minute", "window": "calls in flight"}

Change = tuple[float, str, float, str]
"""Seconds since the first call, what moved ("requests_per_minute" or "window"), to what, and why."""


@dataclass(frozen=True, slots=True)
class LimitPicture:
    """One model in one process.

    Attributes:
        model, started_at: which.
        granted, accepted, limited: calls let through, accepted by the provider, and refused by its limits.
        svg: the limits over time, "" where none moved.
    """

    model: str
    started_at: str
    granted: int
    accepted: int
    limited: int
    svg: str


def limit_pictures(sessions: Iterable[SessionRow]) -> list[LimitPicture]:
    """A picture for each model and process whose limits moved, the latest first."""
    found: list[LimitPicture] = []
    for session in sorted(sessions, key=lambda row: row.id, reverse=True):
        limits = session.detail.get("limits")
        for model, history in sorted(limits.items()) if isinstance(limits, dict) else ():
            changes = _changes(history)
            if isinstance(history, dict) and changes and len(found) < MOST:
                granted, accepted = _count(history, "granted"), _count(history, "accepted")
                refused, picture = (
                    _count(history, "rate_limited"),
                    limit_figure(f"limits-{len(found)}", changes),
                )
                found.append(LimitPicture(model, session.started_at, granted, accepted, refused, picture))
    return found


def limit_figure(name: str, changes: list[Change]) -> str:
    """Steps of the limits over minutes; where a refusal lowered one, a mark.

    Args:
        name: of the figure, unique on its page.
        changes: in the order of their times.
    """
    kinds = [kind for kind in KINDS if any(what == kind for _, what, _, _ in changes)]
    last = max(at for at, *_ in changes)

    def draw(figure: Figure) -> None:
        rows = figure.subplots(len(kinds), 1, sharex=True, squeeze=False)[:, 0]
        for axes, kind in zip(rows, kinds, strict=True):
            _draw_one(axes, kind, [change for change in changes if change[1] == kind], last)
        rows[-1].set_xlabel("minutes since the first call (mark: lowered by a refusal)")

    return svg(name, 5.6, 0.55 + 1.05 * len(kinds), draw)


def _draw_one(axes: Axes, kind: str, changes: list[Change], last: float) -> None:
    minutes = [at / 60 for at, *_ in changes]
    values = [value for _, _, value, _ in changes]
    axes.step([*minutes, last / 60], [*values, values[-1]], where="post", color=ACCENT, lw=1.3)
    refused = [(at / 60, value) for at, _, value, why in changes if why == "refused"]
    if refused:
        axes.plot(*zip(*refused, strict=True), ls="", marker="v", markersize=4, color=FAILED)
    axes.set_ylim(0, 1.15 * max(values))
    axes.yaxis.set_major_locator(MaxNLocator(3, integer=True))
    axes.grid(axis="y", color=RULE, lw=0.5)
    axes.set_title(KINDS[kind], loc="left", fontsize=9)


def _changes(history: JsonValue) -> list[Change]:
    rows = history.get("changes") if isinstance(history, dict) else None
    changes: list[Change] = []
    for row in rows if isinstance(rows, list) else ():
        match row:
            case [int() | float() as at, str() as what, int() | float() as value, str() as why] if (
                what in KINDS
            ):
                changes.append((float(at), what, float(value), why))
    return changes


def _count(history: dict[str, JsonValue], name: str) -> int:
    value = history.get(name)
    return value if isinstance(value, int) else 0
