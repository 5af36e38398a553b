import numpy as np
import pytest

from synth_platform.contract.cohort_spec import CONTROLS, DP_GENERATORS
from synth_platform.contract.options import G0Options
from synth_platform.generators import controls, g0, registry
from synth_platform.generators.controls import fit_control
from synth_platform.generators.g0 import G0
from synth_platform.generators.protocol import GeneratorState, PrivacyTarget
from synth_platform.generators.store import load_state, save_state
from synth_platform.generators.synthetic import synthetic_rows


def test_a_stored_state_samples_the_same_table(reference, rows, ask_noisily, tmp_path):
    g = G0(reference, G0Options(latent=3), PrivacyTarget(2.0, 1e-5))
    states = {"G0": g.fit(g.measure(ask_noisily(rows(300, 1), 2)))}
    for code in CONTROLS:
        states[code] = fit_control(code, reference=reference, train=rows(300, 1), fresh=rows(300, 3))
    for code, state in states.items():
        save_state(state, tmp_path / code)
        direct = (g0.sample if code == "G0" else controls.sample)(state, rows=80, seed=9)
        stored = registry.sample(load_state(tmp_path / code), rows=80, seed=9)
        for name in ("x", "label", "event", "time", "key"):
            assert np.array_equal(getattr(direct, name), getattr(stored, name)), (code, name)


def test_every_registrable_generator_has_a_sampler():
    assert set(registry.SAMPLERS) == {*DP_GENERATORS, *CONTROLS}


def test_unknown_generators_and_empty_tables_are_refused():
    with pytest.raises(ValueError, match="no sampler for generator 'G9'"):
        registry.sample(GeneratorState("G9", {}, {}), rows=10, seed=0)
    with pytest.raises(ValueError, match="at least one row"):
        registry.sample(GeneratorState("G0", {}, {}), rows=0, seed=0)


def test_keys_have_six_digits():
    n = 1_000_000
    none = np.zeros(n, dtype=np.int64)
    with pytest.raises(ValueError, match="at most 999999"):
        synthetic_rows((), x=np.zeros((n, 0)), label=none, event=none, time=np.ones(n))
