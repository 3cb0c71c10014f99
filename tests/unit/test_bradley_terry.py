"""Bradley-Terry: other people's estimates, honest intervals and ranks, length control."""

from dataclasses import replace

import evalica
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import t
from sklearn.linear_model import LogisticRegression

from botchat.errors import DataError
from botchat.metrics.statistics import level_of_best, level_of_pairs
from botchat.ratings.bradley_terry import ELO, BradleyTerryResult, fit, ranks_from_order
from botchat.ratings.comparisons import Comparisons
from botchat.ratings.elo import bootstrap_elo
from tests.rows import rows

GAMES = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd"), st.sampled_from((1.0, 0.5, 0.0))),
    min_size=4,
    max_size=60,
).map(lambda games: [game for game in games if game[0] != game[1]])


def of_wins(wins: dict[tuple[str, str], int]) -> Comparisons:
    """Comparisons from numbers of wins of the first over the second."""
    return Comparisons.of([(*pair, 1.0) for pair, n in wins.items() for _ in range(n)])


def of_utility(utility: np.ndarray, tie: float = 0.0) -> Comparisons:
    """Every pair on every seed in both orders, the better utility wins; shape (seeds, models).

    With Gumbel noise each verdict alone is Bradley-Terry; those of one seed hang together.
    """
    n, m = utility.shape
    low, high = np.triu_indices(m, 1)
    first, second = np.concatenate([low, high]), np.concatenate([high, low])
    lead = utility[:, first] - utility[:, second]
    result = np.where(np.abs(lead) <= tie, 0.5, (lead > 0) * 1.0).ravel()
    columns = np.tile(first, n), np.tile(second, n), result, np.repeat(np.arange(n), len(first))
    return Comparisons(tuple(f"m{i:02}" for i in range(m)), *columns)


def test_weights_are_copies_and_soft_results_their_mean():
    """Of a win, a tie and a loss; a pair's rating is its mean result, and Elo refuses both."""
    hard = of_utility(np.random.default_rng(0).gumbel(size=(40, 3)), 0.5)
    weight = np.arange(len(hard)) % 3 + 1.0
    copies = np.repeat(np.arange(len(hard)), weight.astype(int))
    parts = (hard.first[copies], hard.second[copies], hard.result[copies])
    weighted = replace(hard, weight=weight / 7)
    np.testing.assert_allclose(
        fit(weighted).rating, fit(Comparisons(hard.models, *parts)).rating, atol=1e-9
    )
    threefold = fit(replace(hard, weight=np.full(len(hard), 3.0)))
    np.testing.assert_allclose(threefold.covariance, fit(hard).covariance, rtol=1e-10)
    index = np.zeros(3, np.intp)
    soft = Comparisons(("a", "b"), index, index + 1, np.array([0.9, 0.5, 0.25]))
    rating = fit(soft).rating
    assert abs(1 / (1 + 10 ** ((rating[1] - rating[0]) / 400)) - 0.55) < 1e-12
    for each in (weighted, soft):
        with pytest.raises(DataError, match="Elo takes wins, ties and losses that count once"):
            bootstrap_elo(each)


def drawn(n_models: int, n_seeds: int, rng: np.random.Generator) -> tuple[Comparisons, np.ndarray]:
    """Comparisons of models evenly apart, and their true ratings."""
    strength = np.linspace(0.8, -0.8, n_models)
    utility = strength + rng.gumbel(size=(n_seeds, n_models))
    return of_utility(utility), 1000 + ELO * (strength - strength.mean())


def with_lengths(
    n_models: int, n_seeds: int, rng: np.random.Generator, ties: float = 0.2
) -> tuple[Comparisons, np.ndarray]:
    """Comparisons won by strength and length, and the differences of length."""
    length = rng.normal(size=n_models) + rng.normal(size=(n_seeds, n_models))
    strength = np.linspace(0.7, -0.7, n_models) + rng.gumbel(size=(n_seeds, n_models))
    decided = of_utility(strength + 0.5 * length)
    result = np.where(rng.random(len(decided)) < ties, 0.5, decided.result)
    seed = decided.cluster
    return (
        replace(decided, result=result),
        length[seed, decided.first] - length[seed, decided.second],
    )


def is_finite(result: BradleyTerryResult) -> bool:
    """Whether ratings and the ends of their intervals are numbers."""
    return bool(np.isfinite([*result.rating, *result.low, *result.high]).all())


def test_american_league_1987():
    """The seven baseball teams of Agresti's Categorical Data Analysis have his estimates."""
    teams = ["Milwaukee", "Detroit", "Toronto", "New York", "Boston", "Cleveland", "Baltimore"]
    wins = [
        *(0, 7, 9, 7, 7, 9, 11), *(6, 0, 7, 5, 11, 9, 9), *(4, 6, 0, 7, 7, 8, 12),
        *(6, 8, 6, 0, 6, 7, 10), *(6, 2, 6, 7, 0, 7, 12), *(4, 4, 5, 6, 6, 0, 6),
        *(2, 4, 1, 3, 1, 7, 0),
    ]  # fmt: skip
    pairs = [(a, b) for a in teams for b in teams]
    result = fit(of_wins(dict(zip(pairs, wins, strict=True))))
    logit = dict(zip(result.models, result.rating / ELO, strict=True))
    ours = [logit[team] - logit["Baltimore"] for team in teams]
    np.testing.assert_allclose(ours, [1.581, 1.436, 1.294, 1.248, 1.108, 0.684, 0], atol=5e-4)


@settings(deadline=None)
@given(GAMES)
def test_equals_evalica(games):
    """Where a finite maximum exists, ratings equal evalica's to 1e-6 Elo."""
    assume(games)
    result = fit(Comparisons.of(games))
    assume(not result.warning)
    verdict = {1.0: evalica.Winner.X, 0.5: evalica.Winner.Draw, 0.0: evalica.Winner.Y}
    first, second, results = zip(*games, strict=True)
    winners = [verdict[r] for r in results]
    scores = evalica.bradley_terry(first, second, winners, tolerance=1e-14, limit=100_000).scores
    ratings = 400 * np.log10([scores[name] for name in result.models])
    np.testing.assert_allclose(result.rating, ratings + 1000 - ratings.mean(), atol=1e-6)


def regressors(comparisons: Comparisons, length: np.ndarray) -> np.ndarray:
    """The regression's matrix: first less second, the last model left out, then length."""
    rows = np.arange(len(comparisons))
    models = np.zeros((len(comparisons), len(comparisons.models)))
    models[rows, comparisons.first] = 1
    models[rows, comparisons.second] -= 1
    return np.column_stack([models[:, :-1], length])


@pytest.mark.parametrize("ties", [0.0, 0.3])
def test_length_control_is_logistic_regression(ties):
    """Ratings of scikit-learn's regression to 1e-6 Elo, errors of the textbook's sandwich."""
    comparisons, length = with_lengths(6, 60, np.random.default_rng(1), ties)
    ours, x, won = fit(comparisons, length), regressors(comparisons, length), comparisons.result
    weight = np.concatenate([won, 1 - won])  # a tie is half a win twice
    model = LogisticRegression(
        C=np.inf, fit_intercept=False, solver="newton-cholesky", tol=1e-12, max_iter=1000
    ).fit(
        np.vstack([x, x])[weight > 0], np.repeat([1.0, 0.0], len(x))[weight > 0], weight[weight > 0]
    )
    strength = np.append(model.coef_[0][:-1], 0)
    np.testing.assert_allclose(ours.rating, 1000 + ELO * (strength - strength.mean()), atol=1e-6)
    assert (ours.warning, ours.n_clusters) == ("", 60)
    rate = 1 / (1 + np.exp(-x @ model.coef_[0]))
    bread = np.linalg.inv(x.T @ (x * (rate * (1 - rate))[:, None]))
    slopes = (x * (won - rate)[:, None]).reshape(60, -1, x.shape[1]).sum(axis=1)
    covariance = (bread @ slopes.T @ slopes @ bread * 60 / 59)[:5, :5]
    centred = np.eye(6)[:, :-1] - 1 / 6
    errors = ELO * np.sqrt(np.diag(centred @ covariance @ centred.T))
    np.testing.assert_allclose(ours.std_error, errors, rtol=1e-5)


def test_intervals_cover_where_verdicts_of_a_seed_hang_together():
    """Clustered 95 % intervals hold the truth in 92 to 98 % of cases; unclustered ones do not."""
    rng = np.random.default_rng(1)
    covered: list[list[np.ndarray]] = [[], []]
    for _ in range(200):
        comparisons, truth = drawn(6, 60, rng)
        for data, held in zip((comparisons, replace(comparisons, cluster=None)), covered,
                              strict=True):  # fmt: skip
            result = fit(data)
            held.append((result.low <= truth) & (truth <= result.high))
    assert 0.92 <= np.mean(covered[0]) <= 0.98
    assert np.mean(covered[1]) < 0.9


@pytest.mark.parametrize(("n_clusters", "each"), [(None, 2), (8, 10), (20, 10)])
def test_intervals_are_as_wide_as_errors(n_clusters, each):
    """Of two comparisons a pair, half of them ties; of topics of ten seeds, which are no seed."""
    rng, errors, widths = np.random.default_rng(3), [], []
    for _ in range(30):
        board = of_utility(rng.gumbel(size=(1 if n_clusters is None else n_clusters * each, 14)))
        seed = None if n_clusters is None else board.cluster
        topic = None if n_clusters is None else board.cluster // each
        result = np.where(rng.random(len(board)) < 0.5, 0.5, rng.random(len(board)) < 0.5)
        found = fit(replace(board, result=result, cluster=topic, seed=seed))
        errors.append(found.rating - 1000)
        widths.append(found.high - found.low)
    assert 0.85 < np.mean(widths) / (3.92 * np.std(errors)) < 1.3


@pytest.mark.parametrize("clusters", [1, 2, 3])
def test_of_few_topics_there_is_no_interval(clusters):
    """Neither as if seeds were independent nor thousands of points wide; and nobody is better."""
    board = of_utility(np.random.default_rng(5).gumbel(size=(30, 3)))
    for part, unit in ((board, "topics"), (board.select(board.cluster < clusters), "seeds")):
        found = fit(replace(part, cluster=part.cluster % clusters, seed=part.cluster))
        few = "" if clusters == 3 else f"fewer than 3 {unit}: no interval and no rank"
        assert (found.warning.rpartition("; ")[2], is_finite(found)) == (few, not few)
        assert found.n_seeds == (30 if unit == "topics" else clusters)
        assert np.isfinite(found.rating).all()
        assert not few or not found.significantly_better.any()


def test_verdicts_that_do_not_vary_are_not_certain():
    """All ties of one model, or one win for each order on every seed: wide, and nobody is first."""
    utility = np.random.default_rng(5).gumbel(size=(40, 4))
    plain = of_utility(utility, tie=0.4)
    tied = (plain.first == 3) | (plain.second == 3)
    half = fit(replace(plain, result=np.where(tied, 0.5, plain.result)))
    reach = half.reach() * half.std_error
    assert 10 < reach[3] < 30
    assert reach[:3].min() > 10
    level = of_utility(np.zeros((30, 3)))
    first_wins = fit(replace(level, result=np.ones(len(level))))
    assert first_wins.rating == pytest.approx([1000] * 3)
    assert (first_wins.reach() * first_wins.std_error > 15).all()
    assert not first_wins.significantly_better.any()


def test_a_model_that_always_loses_leaves_the_others_their_intervals():
    """Verdicts of a seed hang together there too."""
    utility = np.random.default_rng(5).gumbel(size=(40, 5)) - [0, 0, 0, 0, 99]
    found, alone = (fit(of_utility(utility[:, :m])).covariance[:2, :2] for m in (5, 4))
    assert [1, -1] @ found @ [1, -1] == pytest.approx([1, -1] @ alone @ [1, -1], rel=0.1)


@pytest.mark.parametrize(("wins", "warning"), rows("no_finite_ratings"))
def test_no_finite_rating_is_a_warning(wins, warning):
    """Never compared, even through others, or won everything: finite, wide, and a warning."""
    comparisons = of_wins({tuple(pair): n for pair, n in wins.items()})
    for length in (None, np.random.default_rng(7).normal(size=len(comparisons))):
        result = fit(comparisons, length)
        assert warning in result.warning
        assert is_finite(result)
        assert result.rating.argmax() == 0
        assert (result.high - result.low).max() > 400


@pytest.mark.parametrize(("ratings", "clusters", "first", "last"), rows("ladders"))
def test_a_ladder_is_in_order_and_level_models_share_all_ranks(ratings, clusters, first, last):
    """Far apart: one rank each; equal: every rank."""
    result = BradleyTerryResult(tuple("abc"), np.array(ratings), np.eye(3), clusters, "")
    ranks = ranks_from_order(result.significantly_better)
    assert [ends.tolist() for ends in ranks] == [first, last]


@pytest.mark.parametrize(
    ("m", "level", "tail"),
    [(8, level_of_pairs, 0.025 / 28), (8, level_of_best, 0.05 / 7), (2, level_of_best, 0.025)],
)
def test_all_are_told_apart_together(m, level, tail):
    """A difference beyond Bonferroni's quantile is significant, one below is not."""
    df = 20
    reach = t.ppf(1 - tail, df) * 2**0.5
    for lead, differs in ((reach * 1.001, True), (reach * 0.999, False)):
        rating = np.array([lead, *[0.0] * (m - 1)])
        result = BradleyTerryResult(tuple("abcdefgh"[:m]), rating, np.eye(m), df + 1, "")
        better = result.above(result.models, level(m))
        assert level is level_of_best or (better == result.significantly_better).all()
        assert better[0, 1:].tolist() == [differs] * (m - 1)
        assert not better[1:].any()


def test_level_boards_are_hardly_ever_ranked():
    """One in twenty calls anything significantly better, or one of two equal models the best."""
    rng = np.random.default_rng(7)
    boards = [fit(of_utility(rng.gumbel(size=(12, 8)))) for _ in range(40)]
    pairs = [fit(of_utility(rng.gumbel(size=(20, 3)) - [0, 0, 1])) for _ in range(40)]
    wrong = sum(bool(board.significantly_better.any()) for board in boards)
    leads = [board.above(board.models, level_of_best(3)).sum(axis=1).max() == 2 for board in pairs]
    assert max(wrong, sum(leads)) <= 0.06 * 40 + 2 * np.sqrt(0.05 * 0.95 * 40)
