"""Whether populations run away: the rate map, its verdicts beside simulations, and stable fits."""

import pickle
import warnings

import numpy as np
import pytest
import stability as benchmark  # in benchmarks/
from scipy.stats import nbinom

import glmbrian as glm
from glmbrian.population import stabilising
from glmbrian.population.stability import RateMap

every_activation = pytest.mark.parametrize("activation", ["sigmoid", "probit", "cloglog"])


def neuron(excitation, bias=-4.0, window=20):
    return glm.GLMPopulation([bias], {}, {}, glm.IndicatorBasis(window), [[excitation] * window])


# ---------------------------------------------------------------------- the rate map


@every_activation
def test_rate_without_averages_is_that_of_a_renewal_process(activation):
    """At a rate of 0 only the last spike matters: draw intervals from the hazards."""
    g = glm.get_activation(activation)
    own = np.array([-5.0, -1.0, 0.5, 1.0])
    found = RateMap(-1.5, 0.0, own, np.zeros((1, 1)), g)
    log_rate, _ = found.log_rates(np.zeros(1), np.zeros((1, 1)), np.zeros(1))
    rng = np.random.default_rng(0)
    n = 40_000
    waiting, intervals = np.ones(n, dtype=bool), np.zeros(n)
    for u in -1.5 + own:
        intervals += waiting
        waiting &= rng.random(n) > g.probability(u)
    # Afterwards the hazard is constant.
    late = nbinom(1, g.probability(-1.5)).rvs(waiting.sum(), random_state=1) + 1
    intervals[waiting] += late
    error = intervals.std() / intervals.mean() / np.sqrt(n)
    assert log_rate[0] == pytest.approx(-np.log(intervals.mean()), abs=4 * error)


@every_activation
def test_averages_are_those_of_independent_spikes(activation):
    g = glm.get_activation(activation)
    rng = np.random.default_rng(1)
    own, coupling = np.append(-4.0, rng.normal(0.1, 0.2, 30)), 0.3 * rng.normal(size=(2, 30))
    coupling[1] = 0.0  # itself
    rates = np.array([[0.3, 0.2]])
    got, _ = RateMap(-2.0, 0.0, own, coupling, g).log_rates(rates[:, 1], rates, rates[0])
    n = 20_000
    mine = (rng.random((n, own.size)) < 0.2) * own
    others = (rng.random((n, 30)) < 0.3) @ coupling[0]
    earlier = np.cumsum(mine[:, ::-1], axis=1)[:, ::-1] - mine
    p = g.probability(-2.0 + others[:, np.newaxis] + own + earlier).mean(axis=0)
    survival = np.append(1.0, np.cumprod(1 - p))
    late = g.probability(-2.0 + others).mean()
    interval = survival[:-1].sum() + survival[-1] / late
    assert got[0] == pytest.approx(-np.log(interval), abs=0.03)


@every_activation
def test_slopes_are_those_of_finite_differences(activation):
    rng = np.random.default_rng(2)
    own, coupling = np.append(-3.0, 0.3 * rng.normal(size=5)), 0.4 * rng.normal(size=(3, 4))
    coupling[1] = 0.0
    path = np.array([0.05, 0.2, 0.7])[:, np.newaxis] * [1.0, 0.5, 1.2]

    def log_rates(bias, own, coupling):
        found = RateMap(bias, 0.2, own, coupling, glm.get_activation(activation))
        return found.log_rates(path[:, 1], path, np.array([0.02, 0.03, 0.05]))

    _, slopes = log_rates(-2.0, own, coupling)
    eps = 1e-6

    def difference(change):
        up, down = (
            log_rates(*[p + sign * c for p, c in zip((-2.0, own, coupling), change)])[0]
            for sign in (1, -1)
        )
        return (up - down) / (2 * eps)

    nothing = 0 * own, 0 * coupling
    np.testing.assert_allclose(difference((eps, *nothing)), slopes.bias, atol=1e-6)
    for lag in range(own.size):
        change = eps * (np.arange(own.size) == lag)
        np.testing.assert_allclose(difference((0, change, 0 * coupling)), slopes.own[:, lag], atol=1e-6)
    for index in np.ndindex(coupling.shape):
        change = 0 * coupling
        change[index] = eps
        got = slopes.coupling[(slice(None), *index)]
        np.testing.assert_allclose(difference((0, 0 * own, change)), got, atol=1e-6)


# ---------------------------------------------------------------------- verdicts


def test_verdicts_are_those_of_simulations():
    """Neurons that excite themselves, from little to much: which run away in 50,000 steps?"""
    excitations = np.linspace(0.05, 0.8, 12)
    populations = [
        glm.GLMPopulation(
            [-4.0],
            {"coupling": benchmark.SHORT},
            {"coupling": np.zeros((1, 1, 4))},
            benchmark.BASIS,
            [[-4.0, -1.0, *[excitation] * 4]],
        )
        for excitation in excitations
    ]
    verdicts = [population.is_stable(rates=0.02) for population in populations]
    gains = [verdict.gain for verdict in verdicts]
    assert gains == sorted(gains) and gains[0] < 0.5 and gains[-1] > 1.5
    rng = np.random.default_rng(0)
    largest = benchmark.simulate(populations, 50_000, rng, watch=True)[:, 0]
    ran_away = largest > verdicts[0].max_rate[0]
    assert not ran_away[np.array(gains) < 1].any()
    assert ran_away[np.array(gains) > 1.5].all() and ran_away.any()


def test_default_rates_and_bounds():
    population = neuron(0.1)
    verdict = population.is_stable()
    rate = population.activation.probability(-4.0)
    assert verdict.rates == pytest.approx(rate) and verdict.max_rate == pytest.approx(np.sqrt(rate))
    assert population.is_stable(rates=0.001).max_rate == pytest.approx(0.01)
    assert population.is_stable(rates=[0.2], max_rate=0.3).max_rate.tolist() == [0.3]
    assert bool(verdict) and "stable, gain 0.1" in repr(verdict)
    assert "neuron 0 may run away" in repr(neuron(1.0).is_stable())


def test_a_drive_raises_the_gain_by_its_mean_and_its_variance():
    population = neuron(0.2, bias=-5.0)
    base = population.is_stable(rates=0.02).gain
    raised = population.is_stable(rates=0.02, drive=[1.0]).gain
    assert raised == pytest.approx(neuron(0.2).is_stable(rates=0.02).gain)
    assert base < population.is_stable(rates=0.02, drive=[[-1.0], [1.0]]).gain < raised
    assert population.is_stable(rates=0.02, drive=np.ones((7, 1))).gain == pytest.approx(raised)


def test_coupling_counts_by_who_excites_whom():
    def pair(forth, back):
        coupling = np.zeros((2, 2, 10))
        coupling[0, 1], coupling[1, 0] = forth, back
        return glm.GLMPopulation.from_kernels([-4.0, -4.0], {"coupling": coupling})

    alone = pair(0.0, 0.0).is_stable(rates=0.02)
    assert pair(0.7, 0.7).is_stable(rates=0.02).gain > 1 > alone.gain
    inhibited = pair(-0.7, -0.7).is_stable(rates=0.02)
    assert inhibited.gain < alone.gain
    # The inhibition stays at that of neurons at rest: about 10 x 0.02 spikes in the window.
    assert np.log(alone.gain / inhibited.gain) == pytest.approx(0.14, abs=0.05)
    # A kernel by another name is a recurrent one only if the user says so.
    named = glm.GLMPopulation.from_kernels([-4.0, -4.0], {"lateral": pair(0.7, 0.7).kernel("coupling")})
    assert named.is_stable(rates=0.02) and not named.is_stable(rates=0.02, recurrent="lateral")
    assert not named.is_stable(rates=0.02, recurrent=["lateral"])


def test_a_neurons_coupling_with_itself_is_its_feedback():
    kernel = [-3.0, 0.5, 0.5, 0.2]
    fed_back = glm.GLMPopulation([-3.0], {}, {}, glm.IndicatorBasis(4), [kernel])
    coupled = glm.GLMPopulation.from_kernels([-3.0], {"coupling": [[kernel]]})
    assert coupled.is_stable().gain == pytest.approx(fed_back.is_stable().gain)


def test_fits_of_neurons_whose_rates_say_nothing():
    """They are between 0 and 1, whoever set them."""
    population = neuron(0.1)
    population.fitted_rates = np.zeros(1)
    with pytest.raises(ValueError, match="rates must be probabilities"):
        population.is_stable()


def test_refused_arguments_of_is_stable():
    population = glm.GLMPopulation.from_kernels([-4.0, -4.0], {"stimulus": np.zeros((3, 2, 4))})
    for options, message in [
        ({"rates": 0.0}, "rates must be probabilities"),
        ({"rates": [0.1, 1.0]}, "rates must be probabilities"),
        ({"rates": [0.1] * 3}, "rates must have the shape"),
        ({"max_rate": 1.5}, "max_rate must be probabilities"),
        ({"recurrent": "other"}, "recurrent must be one of 'stimulus'"),
        ({"recurrent": "stimulus"}, "'stimulus' has 3 sources"),
        ({"drive": [np.nan, 0.0]}, "drive must be finite"),
        ({"drive": np.zeros((5, 3))}, "drive must have the shape"),
    ]:
        with pytest.raises(ValueError, match=message):
            population.is_stable(**options)


# ---------------------------------------------------------------------- stable fits


@pytest.fixture(scope="module", params=[1, 3])
def ran_away(request):
    """Fits that run away, with their recordings and held-out data."""
    rng = np.random.default_rng(request.param)
    return benchmark.runaways(rng, request.param, 2, 700, 20_000, 10_000, at_once=40)


def test_stabilised_fits_do_not_run_away_and_cost_little(ran_away):
    stable, losses = [], []
    for fit, y, held_out, verdict, _ in ran_away:
        assert not verdict
        other = fit.stabilised(y, {"coupling": y})
        rates = y.mean(axis=0)
        assert other.is_stable(rates).gain <= 0.7 and not fit.is_stable(rates)
        # What it costs on the data of the fit is far less than a bias for each neuron explains.
        lost = fit.log_likelihood(y, {"coupling": y}) - other.log_likelihood(y, {"coupling": y})
        assert lost < 4.0
        spikes = held_out.sum(axis=0)
        bits = [p.score(held_out, {"coupling": held_out}) @ spikes / spikes.sum() for p in (fit, other)]
        losses.append(bits[0] - bits[1])
        stable.append(other)
    largest = benchmark.simulate(stable, 30_000, np.random.default_rng(9), watch=True)
    for top, each in zip(largest, ran_away):
        assert np.all(top < each[3].max_rate)
    assert np.mean(losses) < 0.01


def test_stable_fits_are_the_best_under_the_bound(ran_away):
    """No small change of the free parameters is better and keeps the gain."""
    fit, y, *_ = ran_away[0]
    stable = fit.stabilised(y, {"coupling": y})
    rates, rng = y.mean(axis=0), np.random.default_rng(0)

    def parameters(population):
        return population.bias, population.feedback_weights, population.weights["coupling"]

    def objective(population):
        # The fit has a ridge penalty; its slope there is kept.
        moved = [new - old for new, old in zip(parameters(population), parameters(fit))]
        tilt = sum(0.1 * (m * p).sum() for m, p in zip(moved[1:], parameters(fit)[1:]))
        stiff = sum(0.05 * (m**2).sum() for m in moved[1:])
        return population.log_likelihood(y, {"coupling": y}) - tilt - stiff

    best, tried = objective(stable), 0
    for _ in range(200):
        bias, feedback, coupling = (
            p + 0.02 * rng.normal(size=p.shape) * (p != 0) for p in parameters(stable)
        )
        other = glm.GLMPopulation(bias, stable.kernels, coupling, stable.feedback_basis, feedback)
        if other.is_stable(rates).gain <= 0.699:
            tried += 1
            assert objective(other) <= best + 0.02
    assert tried > 20


def test_stable_fits_of_fit_population(ran_away):
    fit, y, *_ = ran_away[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stable = benchmark.fit_to(y, stable=True)
    other = fit.stabilised(y, {"coupling": y})
    np.testing.assert_allclose(stable.feedback_weights, other.feedback_weights, rtol=1e-6, atol=1e-8)
    for population in fit, stable, other:
        np.testing.assert_allclose(population.fitted_rates, y.mean(axis=0))
        assert population.is_stable().gain == population.is_stable(y.mean(axis=0)).gain
    with pytest.raises(AttributeError, match="constraint of stability"):
        stable.standard_errors_
    again = pickle.loads(pickle.dumps(stable))
    assert np.array_equal(again.bias, stable.bias)
    assert again.is_stable().gain == stable.is_stable().gain


def test_a_design_matrix_that_is_not_kept_gives_the_same(ran_away, monkeypatch):
    fit, y, *_ = ran_away[1]
    kept = fit.stabilised(y, {"coupling": y})
    monkeypatch.setattr(stabilising, "MOST_KEPT", 0)
    again = fit.stabilised(y, {"coupling": y})
    np.testing.assert_allclose(again.feedback_weights, kept.feedback_weights, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(
        again.weights["coupling"], kept.weights["coupling"], rtol=1e-6, atol=1e-8
    )


def test_neurons_that_are_stable_stay_as_they_are():
    rng = np.random.default_rng(0)
    y = rng.random((2000, 2)) < 0.05
    inputs, basis = {"coupling": y}, glm.IndicatorBasis(2)
    fit = glm.fit_population(y, inputs, {"coupling": basis}, penalty=1.0)
    stable = fit.stabilised(y, inputs)
    assert stable is not fit and stable.dt is None
    assert np.array_equal(stable.bias, fit.bias)
    assert np.array_equal(stable.weights["coupling"], fit.weights["coupling"])


def test_a_stimulus_counts_as_drive_and_its_kernel_stays():
    rng = np.random.default_rng(3)
    y, x = np.zeros((1500, 1)), rng.normal(size=(1500, 1))
    for start in range(100, 1500, 300):
        y[start : start + 40 : 2] = 1
    y[rng.integers(0, 1500, 20)] = 1
    inputs, basis = {"stimulus": x}, glm.CustomBasis(np.ones((12, 1)))
    fit = glm.fit_population(y, inputs, {"stimulus": glm.IndicatorBasis(2)}, basis)
    drive, rates = fit.drive(x), y.mean(axis=0)
    assert not fit.is_stable(rates, drive=drive)
    stable = fit.stabilised(y, inputs)
    assert stable.is_stable(rates, drive=drive).gain <= 0.7
    assert np.array_equal(stable.weights["stimulus"], fit.weights["stimulus"])
    assert fit.is_stable(rates, drive=drive).gain > 1  # as before


def test_refused_arguments_of_stabilised():
    y = np.random.default_rng(0).random((300, 2)) < 0.1
    fit = glm.fit_population(y)
    for bound in (0.0, 1.0, 1.5):
        with pytest.raises(ValueError, match="bound must be"):
            fit.stabilised(y, bound=bound)
    with pytest.raises(ValueError, match="max_rate must be above the rates"):
        fit.stabilised(y, max_rate=0.05)
    with pytest.raises(
        ValueError, match="max_rate must be above the rates .* neuron 0 has a rate of 0.998"
    ):
        fit.stabilised(y | [[True, False]])
    silent = glm.GLMPopulation([-3.0, -7.0], {}, {}).stabilised(y * [1, 0])
    assert silent.fitted_rates[1] == 0.5 / 300 and silent.is_stable()
    with pytest.raises(TypeError, match="stable must be True or False"):
        glm.fit_population(y, stable=[1])
