"""One scored run for all tests of the leaderboard: three models, a sweep, a few-shot study and the baselines."""

from __future__ import annotations

import pytest

from bench.scored_run import Made, make_all
from plantain.bench.generate.runfile import BenchRun
from plantain.bench.leaderboard.reading import read_scores
from plantain.bench.leaderboard.scores import Scores
from plantain.bench.leaderboard.tables import Table, make_table


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make_all(tmp_path_factory.mktemp("leaderboard"))


@pytest.fixture(scope="session")
def scores(made: Made) -> Scores:
    with BenchRun.open(made.run) as run:
        return read_scores(run)


@pytest.fixture(scope="session")
def table(scores: Scores) -> Table:
    return make_table(scores)
