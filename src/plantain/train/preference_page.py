"""How a preference training went, as one page: the held-out curve, and why it ended."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from plantain.pages.drawing import ACCENT, FAILED, RULE, SUCCESS, legend, svg
from plantain.pages.publishing import html_target, page_environment, write_page
from plantain.train.preference_plan import PreferencePlan
from plantain.train.preference_run import PreferenceResult
from plantain.version import __version__

TEMPLATES = Path(__file__).parent / "templates"
PAGE = "preference.html"


def write_preference_page(result: PreferenceResult, plan: PreferencePlan, title: str, to: Path) -> Path:
    """Writes the page and returns its path; the numbers are in the training's own JSON file.

    Raises:
        InputError: the folder cannot be written to.
    """
    target = html_target(to / PAGE)
    environment = page_environment(TEMPLATES, "")
    page = environment.get_template("preference.html.j2").render(
        result=result, plan=plan, title=title, figure=curve_figure(result, plan.bound), version=__version__
    )
    write_page(target, page)
    return target


def curve_figure(result: PreferenceResult, bound: float) -> str:
    """Errors of winner and loser against the reference's, with the bound; below them the implicit accuracy."""

    def draw(figure: Figure) -> None:
        errors, accuracy = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
        steps = [step for step, _ in result.curve]
        errors.axhline(bound, color=FAILED, lw=1.0, ls="--", label=f"bound {bound:g}")
        for name, colour in (("winner", SUCCESS), ("loser", ACCENT)):
            values = [getattr(where, f"{name}_ratio") for _, where in result.curve]
            errors.plot(steps, values, color=colour, marker="o", markersize=4, lw=1.4, label=name)
        errors.set_ylabel("error / reference’s")
        accuracy.plot(
            steps,
            [where.accuracy for _, where in result.curve],
            color=SUCCESS,
            marker="o",
            markersize=4,
            lw=1.4,
        )
        accuracy.set_ylim(-0.04, 1.04)
        accuracy.set_ylabel("accuracy")
        accuracy.set_xlabel("step")
        for axes in (errors, accuracy):
            axes.grid(axis="y", color=RULE, lw=0.5)
            axes.set_axisbelow(True)
        legend(errors, columns=3)

    return svg("preference", 6.4, 4.6, draw)
