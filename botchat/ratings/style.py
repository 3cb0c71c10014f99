"""Bradley-Terry with style: rating points that go with length and manner, and ratings without.

The logit of a comparison is t_i - t_j + sum over features of b z, where z is the difference of the
two dialogues in a feature, first less second, in units of its usual size. The strengths t are
ratings at equal style (as in length-controlled AlpacaEval, Dubois et al. 2024, and style control of
Chatbot Arena), shown beside the ranking.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from botchat.ratings.bradley_terry import (
    MAX_STEPS,
    STEP_TOLERANCE,
    BradleyTerryResult,
    BradleyTerrySettings,
    clustered,
    laplacian,
    pair_sums,
    score_rate,
    sums,
    tables,
    weights,
    why_no_maximum,
)
from botchat.ratings.comparisons import Comparisons
from botchat.verdicts import Flags, Floats

_RIDGE = 1e-11
"""Share of the curvature added to it, so that nearly decided comparisons can be inverted."""
_LEAST_BEND = 1e-8
"""Least curvature at a finite maximum, as a share of the curvature at equal odds."""
_OWN_SHARE = 1e-6
"""Least share of a feature's differences that models and earlier features do not explain."""


@dataclass(frozen=True, eq=False)
class StyleResult:
    """Ratings at equal style, and what each feature of style is worth.

    ``adjusted``: the ratings. Of each feature, shape (k,): ``scale``: root mean square difference
    in its own unit; ``coefficient``: rating points for one ``scale`` more, its clustered
    ``std_error`` and the ends of its interval, or nan. ``warning``: what these comparisons cannot
    tell, one line or "".
    """

    adjusted: BradleyTerryResult
    features: tuple[str, ...]
    scale: Floats
    coefficient: Floats
    std_error: Floats
    low: Floats
    high: Floats
    warning: str


def fit_style(
    comparisons: Comparisons,
    differences: Floats,
    features: Sequence[str],
    settings: BradleyTerrySettings | None = None,
) -> StyleResult:
    """Maximum-likelihood ratings and coefficients, with a sandwich clustered by seed.

    ``differences``: of the k ``features`` in each comparison, first less second, shape (n, k).
    A feature that models or earlier features explain gets no coefficient. Without a finite maximum,
    models get the ties of `bradley_terry.fit`, each feature one at its usual difference if
    necessary, and intervals come from the curvature alone. `MissingError`: there is no comparison.
    """
    settings = settings or BradleyTerrySettings()
    comparisons.need_some()
    n, m, k = len(comparisons), len(comparisons.models), len(features)
    if differences.shape != (n, k) or not np.isfinite(differences).all():
        raise ValueError(
            f"differences need a finite number for each of {n} comparisons and {k} features, got "
            f"shape {differences.shape}"
        )
    scale = np.sqrt(np.mean(differences**2, axis=0))
    weight = weights(comparisons, settings.tie_weight)
    design = _Styled(comparisons, weight, differences / np.where(scale > 0, scale, 1))
    kept = design.told_apart()
    design = _Styled(comparisons, weight, design.style[:, kept])
    said = [
        f"{name} {'goes with the models or the other features' if scale[i] else 'never differs'}, "
        "so what it is worth is not known"
        for i, name in enumerate(features)
        if not kept[i]
    ]
    warning = why_no_maximum(comparisons.models, tables(comparisons, settings.tie_weight)[1])
    found, ties, undecided = _maximum(design, bounded=not warning)
    said = [note for note in (warning, undecided, *said) if note]
    covariance, n_clusters = _covariance(design, found, ties)
    centre = np.eye(m) - 1 / m
    coefficient, std_error = np.full((2, k), np.nan)
    coefficient[kept] = settings.elo * found[m:]
    std_error[kept] = settings.elo * np.sqrt(np.maximum(np.diag(covariance)[m:], 0))
    adjusted = BradleyTerryResult(
        settings,
        comparisons.models,
        settings.mean + settings.elo * (found[:m] - found[:m].mean()),
        settings.elo**2 * centre @ covariance[:m, :m] @ centre,
        n_comparisons=n,
        n_clusters=n_clusters,
        warning=warning,
    )
    half = adjusted.width * std_error
    return StyleResult(
        adjusted,
        tuple(features),
        scale,
        coefficient,
        std_error,
        low=coefficient - half,
        high=coefficient + half,
        warning="; ".join(said),
    )


@dataclass(frozen=True, eq=False)
class _Styled:
    """A regression on m models (first less second) and k features; X, (n, m + k), is never made."""

    comparisons: Comparisons
    weight: Floats
    style: Floats

    def logits(self, parameters: Floats) -> Floats:
        """X times parameters, shape (n,)."""
        m = len(self.comparisons.models)
        strength = parameters[:m]
        models = strength[self.comparisons.first] - strength[self.comparisons.second]
        return np.asarray(models + self.style @ parameters[m:])

    def slopes(self, residual: Floats) -> Floats:
        """X transposed times residual, shape (m + k,)."""
        return np.concatenate([self._by_model(residual), self.style.T @ residual])

    def information(self, weight: Floats) -> Floats:
        """X transposed times weight times X, shape (m + k, m + k)."""
        pairs = pair_sums(self.comparisons, weight)
        weighted = weight[:, None] * self.style
        cross = np.array([self._by_model(feature) for feature in weighted.T])
        cross = cross.reshape(-1, len(pairs))
        return np.block([[laplacian(pairs + pairs.T), cross.T], [cross, self.style.T @ weighted]])

    def curvature(self, parameters: Floats, ties: Floats) -> Floats:
        """Minus the Hessian of the log-likelihood, made invertible, shape (m + k, m + k).

        ``ties``: 1 for each parameter with a tie, shape (m + k,); without, a constant added to the
        matrix fixes the models' level.
        """
        m = len(self.comparisons.models)
        rate, own = score_rate(self.logits(parameters)), score_rate(parameters)
        matrix = self.information(self.weight * rate * (1 - rate)) + np.diag(ties * own * (1 - own))
        level = np.diag(matrix)[:m].mean()
        matrix[:m, :m] += (1 - ties[:m].max()) * level / m + _RIDGE * level * np.eye(m)
        return matrix

    def told_apart(self) -> Flags:
        """Features that models and earlier features do not explain, shape (k,)."""
        matrix = self.information(self.weight)
        whole, left = np.diag(matrix)[len(self.comparisons.models) :], self._beyond_models(matrix)
        kept = np.zeros(len(whole), dtype=bool)
        for i in range(len(whole)):
            if left[i, i] > _OWN_SHARE * whole[i]:
                kept[i] = True
                left = left - np.outer(left[:, i], left[i]) / left[i, i]
        return kept

    def decided(self, parameters: Floats) -> bool:
        """Whether style explains the results so well that its coefficients are not finite."""
        if not self.style.shape[1]:
            return False
        rate = score_rate(self.logits(parameters))
        before, now = (
            np.linalg.eigvalsh(self._beyond_models(self.information(weight)))[0]
            for weight in (self.weight, self.weight * rate * (1 - rate))
        )
        return bool(now < _LEAST_BEND * before)

    def _beyond_models(self, matrix: Floats) -> Floats:
        """The features' part of an information matrix not explained by models, shape (k, k)."""
        m = len(self.comparisons.models)
        explained = np.linalg.pinv(matrix[:m, :m], hermitian=True) @ matrix[:m, m:]
        return np.asarray(matrix[m:, m:] - matrix[m:, :m] @ explained)

    def _by_model(self, values: Floats) -> Floats:
        """Each model's sum as first less its sum as second, shape (m,)."""
        m = len(self.comparisons.models)
        return sums(self.comparisons.first, values, m) - sums(self.comparisons.second, values, m)


def _covariance(design: _Styled, parameters: Floats, ties: Floats) -> tuple[Floats, int | None]:
    """Covariance of the parameters, shape (m + k, m + k), and the number of clusters, if any."""
    bread = np.asarray(np.linalg.inv(design.curvature(parameters, ties)), dtype=np.float64)
    if ties.any() or len(design.comparisons) <= len(parameters):
        # Residuals of a fit that explains everything are 0, which does not make it certain.
        return bread, None
    result = design.comparisons.result
    residual = design.weight * (result - score_rate(design.logits(parameters)))
    middle, n = clustered(design.comparisons, residual, design.style)
    if middle is None:
        return bread @ design.information(residual**2) @ bread, None
    return bread @ middle @ bread, n


def _maximum(design: _Styled, *, bounded: bool) -> tuple[Floats, Floats, str]:
    """Parameters of greatest likelihood, the ties that keep them finite, why features have any."""
    ties = np.zeros(len(design.comparisons.models) + design.style.shape[1])
    ties[: len(design.comparisons.models)] = not bounded
    found = _maximise(design, ties)
    if found is not None and not design.decided(found):
        return found, ties, ""
    ties[:] = 1
    found = _maximise(design, ties)
    assert found is not None, "a likelihood with a tie for every parameter has a maximum"
    return (
        found,
        ties,
        "style explains every comparison, so what it is worth is not known; one tie at each "
        "feature's usual difference was added to keep it finite",
    )


def _maximise(design: _Styled, ties: Floats) -> Floats | None:
    """Parameters of greatest likelihood, or None; steps damped as in `bradley_terry.maximise`."""
    parameters = np.zeros(len(ties))
    for _ in range(MAX_STEPS):
        residual = design.comparisons.result - score_rate(design.logits(parameters))
        slope = design.slopes(design.weight * residual) - ties * (score_rate(parameters) - 0.5)
        try:
            step = np.asarray(np.linalg.solve(design.curvature(parameters, ties), slope))
        except np.linalg.LinAlgError:  # so far out that the curvature is 0
            return None
        change = max(np.abs(design.logits(step)).max(), np.abs(ties * step).max())
        parameters += (np.log1p(change) / max(change, 1e-300)) * step
        if change < STEP_TOLERANCE:
            return parameters
    return None
