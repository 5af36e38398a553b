"""The fixed learners agree with independent libraries, and with the definition where no library has it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from lifelines import CoxPHFitter
from scipy.optimize import minimize
from scipy.stats import f_oneway
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from synth_platform.evaluation.learners import ABSENT_CLASS_SCORE, anova_f, fit_cox, fit_lda


def _labelled(n: int, p: int, classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    label = rng.integers(0, classes, n)
    x = rng.normal(size=(n, p)) @ rng.normal(size=(p, p)) / np.sqrt(p) + rng.normal(size=(classes, p))[label]
    return x, label


@pytest.mark.parametrize(("n", "p", "classes", "shrinkage"), [(200, 8, 3, 0.2), (300, 200, 4, 0.2), (60, 90, 3, 0.5)])
def test_lda_equals_scikit_learn(n: int, p: int, classes: int, shrinkage: float) -> None:
    x, label = _labelled(n, p, classes, seed=n)
    fresh, _ = _labelled(50, p, classes, seed=n + 1)
    peer = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage).fit(x, label)
    scores = fit_lda(x, label, classes, shrinkage).scores(fresh)
    decision = peer.decision_function(fresh)
    expected = np.stack(
        [decision[:, k] - np.logaddexp.reduce(np.delete(decision, k, axis=1), axis=1) for k in range(classes)], axis=1
    )
    np.testing.assert_allclose(scores, expected, rtol=1e-7, atol=1e-7)
    assert (scores.argmax(axis=1) == peer.predict(fresh)).all()


def test_lda_never_predicts_a_class_it_has_not_seen() -> None:
    x, label = _labelled(80, 5, 2, seed=4)
    scores = fit_lda(x, 2 * label, 3).scores(x)  # classes 0 and 2 have rows, class 1 has none
    assert (scores[:, 1] == ABSENT_CLASS_SCORE).all()
    assert set(scores.argmax(axis=1)) == {0, 2}
    np.testing.assert_allclose(scores[:, 0], -scores[:, 2])


def test_lda_with_one_class_predicts_it() -> None:
    x, _ = _labelled(20, 3, 2, seed=5)
    scores = fit_lda(x, np.ones(20, np.int64), 2).scores(x)
    assert np.isfinite(scores).all()
    assert (scores.argmax(axis=1) == 1).all()


def _survival(n: int, p: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p))
    # lifelines penalises coefficients of unit-variance columns; ours penalises the columns as they are encoded.
    x = (x - x.mean(axis=0)) / x.std(axis=0, ddof=1)
    beta = rng.normal(size=p) / np.sqrt(p)
    time = rng.exponential(np.exp(-x @ beta))
    censor = rng.exponential(1.5, n)
    return x, np.minimum(time, censor), (time <= censor).astype(np.int64)


@pytest.mark.parametrize(("n", "p", "penalty"), [(150, 6, 0.1), (200, 60, 0.3)])
def test_cox_equals_lifelines_without_ties(n: int, p: int, penalty: float) -> None:
    x, time, event = _survival(n, p, seed=p)
    frame = pd.DataFrame(x).assign(time=time, event=event)
    peer = CoxPHFitter(penalizer=penalty, l1_ratio=0.0).fit(frame, "time", "event", fit_options={"precision": 1e-10})
    np.testing.assert_allclose(fit_cox(x, time, event, penalty).coef, peer.params_.to_numpy(), rtol=1e-4, atol=1e-5)


def test_cox_maximises_the_penalised_breslow_likelihood_with_ties() -> None:
    x, time, event = _survival(90, 4, seed=2)
    time = np.ceil(time * 5)  # many tied times

    def loss(beta: np.ndarray) -> float:
        eta = x @ beta
        partial = sum(eta[i] - np.log(np.exp(eta[time >= time[i]]).sum()) for i in np.flatnonzero(event))
        return float(-partial / len(x) + 0.05 * beta @ beta)

    expected = minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-7}).x
    np.testing.assert_allclose(fit_cox(x, time, event, 0.1).coef, expected, atol=2e-5)


def test_cox_without_events_knows_nothing_and_with_more_columns_than_rows_still_fits() -> None:
    x, time, event = _survival(40, 70, seed=8)
    assert (fit_cox(x, time, np.zeros(40, np.int64)).coef == 0).all()
    assert np.isfinite(fit_cox(x, time, event).risk(x)).all()


def test_cox_survives_huge_values() -> None:
    x, time, event = _survival(80, 3, seed=9)
    x[0] = 1e3
    assert np.isfinite(fit_cox(x, time, event).coef).all()


def test_anova_equals_scipy_per_feature() -> None:
    x, label = _labelled(120, 15, 4, seed=6)
    expected = [f_oneway(*[x[label == k, j] for k in range(4)]).statistic for j in range(15)]
    np.testing.assert_allclose(anova_f(x, label, 4), expected, rtol=1e-9)
    np.testing.assert_allclose(anova_f(x, label, 6), expected, rtol=1e-9)  # classes without rows do not count


def test_anova_of_constant_and_separating_features() -> None:
    label = np.array([0, 0, 1, 1])
    f = anova_f(np.stack([np.full(4, 3.0), label.astype(float), np.array([0.0, 1, 2, 3])], axis=1), label, 2)
    assert f[0] == 0
    assert f[1] > 1e6
    assert f[2] == pytest.approx(8.0)
    assert np.isnan(anova_f(np.ones((4, 1)), np.zeros(4, np.int64), 2)).all()
