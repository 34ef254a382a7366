// Gradients of one presentation in the neurons' potentials: see
// glmbrian/core/likelihoods.py.  `Activation` comes from glmbrian.Activation.cpp.
// Template parameters have long names, since the C code that Brian2GeNN includes defines
// single-letter macros.
#ifndef GLMBRIAN_GRADIENTS_HPP
#define GLMBRIAN_GRADIENTS_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

// Arrays whose size depends on the user, such as those over steps, are vectors or members of
// objects made by `new`: they may exceed the stack, and even 2 GB.
namespace glmbrian {

// Whether an objective wants a spike in a step, counted from 0; the first one is to be in step `start`,
// counted from 1, and 0 stands for `period`.
template <class Goal>
bool is_desired(int step, int neuron, int label, int64_t period, int64_t start)
{
    const int64_t shifted = step - (start ? start - period : 0);
    // No period reaches beyond the largest integer, so no step beyond it has a spike.
    return shifted >= 0 && shifted < INT32_MAX && Goal::desired((int)shifted, neuron, label, period);
}

// exp, for loops that should be vectorised.  The GNU C library has vector forms, which differ from
// `exp` by a few units in the last place, but its headers declare them only with all of -ffast-math,
// and we compile without its -ffinite-math-only.
#if defined(__GLIBC__) && defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
extern "C" __attribute__((simd("notinbranch"), const)) double exp_of_many(double) noexcept __asm__("exp");
#else
inline double exp_of_many(double x) { return std::exp(x); }
#endif

// Defaults of what an activation need not define: see glmbrian.Activation.cpp.
template <class Activation>
struct ActivationBase {
    static double probability(double u) { return std::exp(Activation::log_spike(u)); }
    static double probability_slope(double u)
    {
        return std::exp(Activation::log_spike(u)) * Activation::log_spike_slope(u);
    }
};

// log(g + (1 - g) w), given both logarithms and loss = 1 - w.
inline double log_mixture(double log_g, double log_rest, double log_w, double loss)
{
    const double missing = std::exp(log_rest) * loss;
    if (missing < 0.5) return std::log1p(-missing);
    const double b = log_rest + log_w, largest = std::max(log_g, b);
    return largest + std::log(std::exp(log_g - largest) + std::exp(b - largest));
}

// Eqs. first_spk_method_2 to first_spk_method_q; returns the log-likelihood.  Goes
// backwards over the steps to avoid cancellation: see glmbrian/core/likelihoods.py.
template <class Activation, int STEPS, int NEURONS>
double first_to_spike_gradient(const double (&u)[STEPS][NEURONS], int label, double (&grad)[STEPS][NEURONS])
{
    std::vector<double> stop(STEPS), go_on(STEPS), loss(STEPS);
    // w_t is the probability that the right neuron is first if none spiked before step t:
    // log w_t, 1 - w_t
    double log_win = -INFINITY, loss_now = 1.0;
    for (int t = STEPS - 1; t >= 0; t--) {
        const double log_g = Activation::log_spike(u[t][label]);
        const double log_rest = Activation::log_silence(u[t][label]);
        const double log_s = log_mixture(log_g, log_rest, log_win, loss_now);
        loss[t] = loss_now;
        grad[t][label] = Activation::log_spike_slope(u[t][label]);
        stop[t] = log_g - log_s;
        go_on[t] = log_rest + log_win - log_s;
        log_win = log_s;
        for (int i = 0; i < NEURONS; i++) {
            if (i == label) continue;
            // Adjacent, since they share the expensive part of the computation.
            log_win += Activation::log_silence(u[t][i]);
            grad[t][i] = Activation::log_silence_slope(u[t][i]);
        }
        loss_now = -std::expm1(log_win);
    }
    double log_h = 0.0;
    for (int t = 0; t < STEPS; t++) {
        const double h = std::exp(log_h);
        for (int i = 0; i < NEURONS; i++) grad[t][i] *= h;
        grad[t][label] *= std::exp(stop[t]) * loss[t];
        log_h += go_on[t];
    }
    return log_win;
}

// Eqs. LL_conv and err to rho_def; `desired(t, i)` is the desired train.
template <class Activation, class Desired, int STEPS, int NEURONS>
double rate_gradient(const double (&u)[STEPS][NEURONS], Desired desired, double (&grad)[STEPS][NEURONS])
{
    double log_likelihood = 0.0;
    for (int t = 0; t < STEPS; t++)
        for (int i = 0; i < NEURONS; i++) {
            const bool spike = desired(t, i);
            log_likelihood += spike ? Activation::log_spike(u[t][i]) : Activation::log_silence(u[t][i]);
            grad[t][i] =
                spike ? Activation::log_spike_slope(u[t][i]) : Activation::log_silence_slope(u[t][i]);
        }
    return log_likelihood;
}

// The mean log-likelihood of earlier presentations: see glmbrian.core.credit.
class Baseline {
public:
    // Returns the log-likelihood less the mean, or 0 if there were none before.
    double reward(double log_likelihood) const { return n_ ? log_likelihood - mean_ : 0.0; }
    void add(double log_likelihood)
    {
        n_++;
        mean_ += (log_likelihood - mean_) * std::max(1.0 / n_, 0.01);
    }

private:
    double mean_ = 0.0;
    long long n_ = 0;
};

// The gradient with respect to the channels in step t: the errors of later steps,
// weighted by the basis.
template <int STEPS, int NEURONS, int K, int W>
void correlate(const double (&grad)[STEPS][NEURONS], const double (&basis)[W][K], int t, double* row)
{
    // The largest power of two that divides K; compilers vectorise over the lags if left to choose.
    constexpr int LANES = (K & -K) < 8 ? K & -K : 8;
    typedef double Lanes __attribute__((vector_size(sizeof(double) * LANES), aligned(sizeof(double)), may_alias));
    const int n_lags = std::min(W, STEPS - 1 - t);
    for (int i = 0; i < NEURONS; i++) {
        Lanes sum[K / LANES] = {{0.0}};
        for (int lag = 1; lag <= n_lags; lag++) {
            const Lanes* effect = (const Lanes*)basis[lag - 1];
            for (int k = 0; k < K / LANES; k++) sum[k] += grad[t + lag][i] * effect[k];
        }
        std::copy_n((const double*)sum, K, row + i * K);
    }
}

// The same for layers of many neurons, LANES of them at once.
template <int STEPS, int NEURONS, int K, int W>
void correlate_wide(const double (&grad)[STEPS][NEURONS], const double (&basis)[W][K], int t, double* row)
{
    constexpr int LANES = 8;
    typedef double Lanes __attribute__((vector_size(sizeof(double) * LANES), aligned(sizeof(double)), may_alias));
    if (NEURONS < LANES) return correlate(grad, basis, t, row);
    const int n_lags = std::min(W, STEPS - 1 - t);
    for (int end = LANES; end < NEURONS + LANES; end += LANES) {
        const int first = std::min(end, NEURONS) - LANES;  // the last two may overlap
        Lanes sum[K] = {{0.0}};
        for (int lag = 1; lag <= n_lags; lag++) {
            const Lanes errors = *(const Lanes*)&grad[t + lag][first];
            for (int k = 0; k < K; k++) sum[k] += errors * basis[lag - 1][k];
        }
        for (int k = 0; k < K; k++)
            for (int lane = 0; lane < LANES; lane++) row[(first + lane) * K + k] = sum[k][lane];
    }
}

}  // namespace glmbrian

#endif  // GLMBRIAN_GRADIENTS_HPP
