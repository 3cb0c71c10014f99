"""Bradley-Terry at equal length: ratings without what goes with how long a dialogue is.

The logit of a comparison is t_i - t_j + b z, where z is the length of the first dialogue less that
of the second, in units of its usual size. The strengths t are shown beside the ranking (as in
length-controlled AlpacaEval, Dubois et al. 2024).
"""

from __future__ import annotations

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
"""Least share of the differences in length that models do not explain."""


def fit_at_equal_length(
    comparisons: Comparisons, differences: Floats, settings: BradleyTerrySettings | None = None
) -> BradleyTerryResult:
    """Maximum-likelihood ratings at equal length, with a sandwich clustered by seed.

    ``differences``: length of the first less the second, shape (n,). Length that the models explain
    is left out. Without a finite maximum, models get the ties of `bradley_terry.fit`, length one at
    its usual difference if necessary, and intervals come from the curvature alone. Raises
    `MissingDataError` if there is no comparison.
    """
    settings = settings or BradleyTerrySettings()
    comparisons.need_some()
    m, length = len(comparisons.models), differences[:, None]
    scale = np.sqrt(np.mean(length**2, axis=0))
    weight = weights(comparisons, settings.tie_weight)
    design = _WithLength(comparisons, weight, length / np.where(scale > 0, scale, 1))
    design = _WithLength(comparisons, weight, design.length[:, design.told_apart()])
    warning = why_no_maximum(comparisons.models, tables(comparisons, settings.tie_weight)[1])
    found, ties = _maximum(design, bounded=not warning)
    covariance, n_clusters = _covariance(design, found, ties)
    centre = np.eye(m) - 1 / m
    return BradleyTerryResult(
        settings,
        comparisons.models,
        settings.mean + settings.elo * (found[:m] - found[:m].mean()),
        settings.elo**2 * centre @ covariance[:m, :m] @ centre,
        n_comparisons=len(comparisons),
        n_clusters=n_clusters,
        warning=warning,
    )


@dataclass(frozen=True, eq=False)
class _WithLength:
    """A regression on m models (first less second) and length, k = 1, or 0 where it is left out.

    X, (n, m + k), is never made.
    """

    comparisons: Comparisons
    weight: Floats
    length: Floats

    def logits(self, parameters: Floats) -> Floats:
        """X times parameters, shape (n,)."""
        m = len(self.comparisons.models)
        strength = parameters[:m]
        models = strength[self.comparisons.first] - strength[self.comparisons.second]
        return np.asarray(models + self.length @ parameters[m:])

    def slopes(self, residual: Floats) -> Floats:
        """X transposed times residual, shape (m + k,)."""
        return np.concatenate([self._by_model(residual), self.length.T @ residual])

    def information(self, weight: Floats) -> Floats:
        """X transposed times weight times X, shape (m + k, m + k)."""
        pairs = pair_sums(self.comparisons, weight)
        weighted = weight[:, None] * self.length
        cross = np.array([self._by_model(feature) for feature in weighted.T])
        cross = cross.reshape(-1, len(pairs))
        return np.block([[laplacian(pairs + pairs.T), cross.T], [cross, self.length.T @ weighted]])

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
        """Whether models do not explain the length, shape (k,)."""
        matrix = self.information(self.weight)
        whole = np.diag(matrix)[len(self.comparisons.models) :]
        return np.asarray(np.diag(self._beyond_models(matrix)) > _OWN_SHARE * whole)

    def decided(self, parameters: Floats) -> bool:
        """Whether length explains the results so well that its coefficient is not finite."""
        if not self.length.shape[1]:
            return False
        rate = score_rate(self.logits(parameters))
        before, now = (
            self._beyond_models(self.information(weight))[0, 0]
            for weight in (self.weight, self.weight * rate * (1 - rate))
        )
        return bool(now < _LEAST_BEND * before)

    def _beyond_models(self, matrix: Floats) -> Floats:
        """The length's part of an information matrix not explained by models, shape (k, k)."""
        m = len(self.comparisons.models)
        explained = np.linalg.pinv(matrix[:m, :m], hermitian=True) @ matrix[:m, m:]
        return np.asarray(matrix[m:, m:] - matrix[m:, :m] @ explained)

    def _by_model(self, values: Floats) -> Floats:
        """Each model's sum as first less its sum as second, shape (m,)."""
        m = len(self.comparisons.models)
        return sums(self.comparisons.first, values, m) - sums(self.comparisons.second, values, m)


def _covariance(design: _WithLength, parameters: Floats, ties: Floats) -> tuple[Floats, int | None]:
    """Covariance of the parameters, shape (m + k, m + k), and the number of clusters, if any."""
    bread = np.asarray(np.linalg.inv(design.curvature(parameters, ties)), dtype=np.float64)
    if ties.any() or len(design.comparisons) <= len(parameters):
        # Residuals of a fit that explains everything are 0, which does not make it certain.
        return bread, None
    result = design.comparisons.result
    residual = design.weight * (result - score_rate(design.logits(parameters)))
    middle, n = clustered(design.comparisons, residual, design.length)
    if middle is None:
        return bread @ design.information(residual**2) @ bread, None
    return bread @ middle @ bread, n


def _maximum(design: _WithLength, *, bounded: bool) -> tuple[Floats, Floats]:
    """Parameters of greatest likelihood, and the ties that keep them finite."""
    ties = np.zeros(len(design.comparisons.models) + design.length.shape[1])
    ties[: len(design.comparisons.models)] = not bounded
    found = _maximise(design, ties)
    if found is not None and not design.decided(found):
        return found, ties
    ties[:] = 1
    found = _maximise(design, ties)
    assert found is not None, "a likelihood with a tie for every parameter has a maximum"
    return found, ties


def _maximise(design: _WithLength, ties: Floats) -> Floats | None:
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
