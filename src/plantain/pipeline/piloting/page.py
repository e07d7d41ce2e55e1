"""A pilot's page: go or stop, and the numbers behind it; the same as JSON."""

from __future__ import annotations

from dataclasses import asdict
from functools import lru_cache
from pathlib import Path

from jinja2 import Environment

from plantain.metrics.statistics.clusters import Rate
from plantain.pages.publishing import html_target, page_environment, write_page
from plantain.pages.wording import DASH
from plantain.pipeline.forecast import CallEstimate
from plantain.pipeline.piloting.decision import PilotDecision, PilotNumbers
from plantain.version import __version__

TEMPLATES = Path(__file__).parent / "templates"
NAME = "pilot.html"


def write_pilot(numbers: PilotNumbers, decision: PilotDecision, title: str, command: str, to: Path) -> Path:
    """Write the page and return its path.

    Args:
        numbers, decision: its contents.
        title: the recipe's name.
        command: continues with the whole.
        to: the HTML file.
    """
    target = html_target(to)
    template = _environment().get_template("pilot.html.j2")
    page = template.render(
        numbers=numbers, decision=decision, title=title, command=command, version=__version__
    )
    write_page(target, page)
    return target


def pilot_document(numbers: PilotNumbers, decision: PilotDecision) -> dict[str, object]:
    """Return what `plantain build --pilot --json` prints, but for paths."""
    whole = numbers.forecast
    return {
        "decision": decision.word,
        "why": list(decision.why),
        "mind": list(decision.mind),
        "tasks": {"asked": numbers.asked, **numbers.states},
        "qualified": rate_json(numbers.qualified),
        "stopped": rate_json(numbers.stopped),
        "undecided": rate_json(numbers.undecided),
        "not_applicable": rate_json(numbers.not_applicable),
        "accepted_by_people": rate_json(numbers.accepted),
        "cost_usd": numbers.cost_usd,
        "calls_unpriced": numbers.unpriced,
        "cost_per_qualified_usd": three(numbers.cost_per_qualified),
        "cost_per_accepted_usd": three(numbers.cost_per_accepted),
        "worked_s": round(numbers.worked_s, 1),
        "whole": {
            "tasks": whole.tasks,
            "images": whole.images,
            "success": three(numbers.qualified_of_whole),
            "cost_usd": three(whole.cost_usd),
            "duration_s": three(whole.duration_s),
            "disk_bytes": three(whole.disk),
            "disk_free_bytes": numbers.free,
        },
        "findings": [
            {
                **{name: value for name, value in asdict(part).items() if name != "rate"},
                "qualified": rate_json(part.rate),
                "standing": part.standing,
            }
            for part in numbers.parts
        ],
        "judges": list(numbers.judges),
    }


def rate_json(rate: Rate) -> dict[str, float | int | None]:
    """Return a rate as scripts read it."""
    return {"n": rate.n, "rate": rate.value, "low": rate.low, "high": rate.high}


def three(estimate: CallEstimate | None) -> dict[str, float] | None:
    """Return low, expected and high as scripts read them."""
    return None if estimate is None else asdict(estimate)


def in_dollars(estimate: CallEstimate | None) -> str:
    """Return "$0.31 ($0.22 to $0.50)"; a dash if unknown."""
    if estimate is None:
        return DASH
    return f"${estimate.expected:,.4g} (${estimate.low:,.4g} to ${estimate.high:,.4g})"


def in_hours(estimate: CallEstimate) -> str:
    """Return "2.1 h (1.0 to 5.5)"; minutes below one and a half hours."""
    size, unit = (3600.0, "h") if estimate.expected >= 5400.0 else (60.0, "min")
    return f"{estimate.expected / size:.1f} {unit} ({estimate.low / size:.1f} to {estimate.high / size:.1f})"


def in_gigabytes(estimate: CallEstimate) -> str:
    """Return "12.3 GB (4.0 to 20.1)"."""
    return f"{estimate.expected / 1e9:.2f} GB ({estimate.low / 1e9:.2f} to {estimate.high / 1e9:.2f})"


def interval(rate: Rate) -> str:
    """Return "41 to 78 %"; a dash if there is none."""
    if rate.low is None or rate.high is None:
        return DASH
    return f"{100 * rate.low:.0f} to {100 * rate.high:.0f} %"


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = page_environment(TEMPLATES, "")
    filters = {"interval": interval, "dollars": in_dollars, "hours": in_hours, "gigabytes": in_gigabytes}
    environment.filters |= filters
    return environment
