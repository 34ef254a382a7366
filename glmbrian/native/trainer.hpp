// Training between the time steps of a user's network with a glm.Trainer, in generated
// C++ code.
//
// glmbrian/training/runtime.py does the same with NumPy, and the tests compare the two.
// glmbrian/training/trainer_cpp.py and learning_cpp.py generate the code that calls this file.
#ifndef GLMBRIAN_TRAINER_HPP
#define GLMBRIAN_TRAINER_HPP

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "gradients.hpp"

namespace glmbrian {

// A group of neurons that learn: the outputs, or hidden neurons.
template <int STEPS, int NEURONS>
class Learner {
public:
    // Of this presentation: potentials, their errors, and spikes if the neurons are free
    double u[STEPS][NEURONS], grad[STEPS][NEURONS];
    bool emitted[STEPS][NEURONS];
    double in_spikes[NEURONS];  // derivatives with respect to the spikes of one step

    template <class Real>
    void record_step(int step, const Real* potential) { std::copy_n(potential, NEURONS, u[step]); }

    // Sets `emitted`, and calls `each` with every neuron that spiked; `spikes` is Brian's array.
    template <class Each>
    void record_spikes(int step, const int32_t* spikes, Each each)
    {
        std::fill_n(emitted[step], NEURONS, false);
        for (int s = 0; s < spikes[NEURONS]; s++) {
            emitted[step][spikes[s]] = true;
            each(spikes[s]);
        }
    }

    // Writes a row for glmbrian.core.outcome.Outcome.from_rows: what a test observed up to its decision.
    void report(bool stops_at_first_spike, double* row) const
    {
        std::fill_n(row, 2 + 3 * NEURONS, 0.0);
        double *counts = row + 2, *sums = counts + NEURONS, *last = sums + NEURONS;
        int step = 0;
        for (bool is_decided = false; step < STEPS && !is_decided; step++)
            for (int i = 0; i < NEURONS; i++) {
                sums[i] += u[step][i];
                counts[i] += emitted[step][i];
                is_decided |= emitted[step][i] && stops_at_first_spike;
            }
        row[0] = step;
        std::copy_n(u[step - 1], NEURONS, last);
    }

    // The errors of hidden neurons in a step.
    template <class Credit, class Activation>
    void find_errors(int t, double reward)
    {
        for (int i = 0; i < NEURONS; i++)
            grad[t][i] = Credit::template slope<Activation>(u[t][i], emitted[t][i], in_spikes[i], reward);
    }

    // change[t][i * K + k] is the gradient in the input that arrives at neuron i in step t.
    template <int K, int W>
    void correlate_step(const double (&basis)[W][K], int t, std::vector<double>& change) const
    {
        const size_t row = (size_t)NEURONS * K;
        change.resize(STEPS * row);
        correlate(grad, basis, t, &change[t * row]);
    }

    template <class Real>
    void learn_bias(Real* bias, bool applies, double rate)
    {
        for (int t = 0; t < STEPS; t++)
            for (int i = 0; i < NEURONS; i++) bias_gradient_[i] += grad[t][i];
        if (!applies) return;
        for (int i = 0; i < NEURONS; i++) bias[i] += rate * bias_gradient_[i];
        std::fill_n(bias_gradient_, NEURONS, 0.0);
    }

private:
    double bias_gradient_[NEURONS] = {0.0};
};

inline double finite_reward(double value)
{
    if (!std::isfinite(value)) throw std::runtime_error("glmbrian: reward must be a finite number");
    return value;
}

// Training in presentations of STEPS steps.  A *set* is the weights of one GLMSynapses, or the
// feedback weights, treated as a synapse from each neuron to itself.
template <int STEPS>
class Trainer {
public:
    int64_t presentation = 0;
    int step = -1;  // of the presentation; below 0 between presentations and after the last
    bool is_test = false;  // whether this presentation is a test, which learns nothing

    // Returns whether a presentation begins, or training ends, with this step.
    bool begin_step(int64_t n_presentations)
    {
        if (is_over_) return false;
        n_presentations_ = n_presentations;
        is_over_ = presentation == n_presentations;
        if (is_over_) return true;
        return ++step == 0;
    }

    void set_test(bool value)
    {
        is_test = value;
        n_recorded_ = value ? 0 : STEPS - 1;
    }

    void record(size_t set, int synapse)
    {
        if (step < 0 || step >= n_recorded_) return;
        if (sets_.size() <= set) sets_.resize(set + 1);
        sets_[set].arrivals.push_back({step, synapse});
    }

    bool is_last_step() const { return step == STEPS - 1; }

    // `last` is the last presentation that learns.
    void add_to_batch(int batch_size, double learning_rate, int64_t last)
    {
        in_batch_++;
        at_once_ = batch_size == 1;
        applies_ = in_batch_ == batch_size || presentation == last;
        rate_ = learning_rate / in_batch_;
    }

    // The log-likelihood, less the mean of earlier ones: see glmbrian.core.credit.Baseline.
    double reward(double log_likelihood)
    {
        const double found = baseline_.reward(log_likelihood);
        baseline_.add(log_likelihood);
        return found;
    }

    // Adds the effect of a spike in step t through the `n` synapses of a set to `in_spikes`.
    // `sources` and `targets` are null for the feedback weights; `delay(s)` is in steps.
    template <int K, class Real, class Delay>
    static void add_effect(int t, const std::vector<double>& change, size_t n_targets, size_t n,
                           const int32_t* sources, const int32_t* targets, Delay delay,
                           Real* const (&weights)[K], double* in_spikes)
    {
        for (size_t s = 0; s < n; s++) {
            const int64_t when = t + (int64_t)delay(s);
            if (when >= STEPS - 1) continue;
            const double* row = &change[(when * n_targets + (targets ? targets[s] : s)) * K];
            double effect = 0.0;
            for (int k = 0; k < K; k++) effect += weights[k][s] * row[k];
            in_spikes[sources ? sources[s] : s] += effect;
        }
    }

    // `targets` holds the postsynaptic neuron of each of the `n` synapses, and is null for
    // the feedback weights.
    template <int K, class Real>
    void learn(size_t set, const std::vector<double>& change, size_t n_targets, size_t n,
               const int32_t* targets, Real* const (&weights)[K])
    {
        if (sets_.size() <= set) sets_.resize(set + 1);
        auto& arrivals = sets_[set].arrivals;
        auto& gradient = sets_[set].gradient;
        if (!at_once_) gradient.resize(n * K);
        for (const Arrival& arrival : arrivals) {
            const size_t s = arrival.synapse, target = targets ? targets[s] : s;
            const double* row = &change[((size_t)arrival.step * n_targets + target) * K];
            for (int k = 0; k < K; k++) {
                if (at_once_)
                    weights[k][s] += rate_ * row[k];
                else
                    gradient[s * K + k] += row[k];
            }
        }
        arrivals.clear();
        if (at_once_ || !applies_) return;
        for (size_t s = 0; s < n; s++)
            for (int k = 0; k < K; k++) weights[k][s] += rate_ * gradient[s * K + k];
        gradient.assign(n * K, 0.0);
    }

    template <int NEURONS, class Real>
    void learn_bias(Learner<STEPS, NEURONS>& neurons, Real* bias)
    {
        neurons.learn_bias(bias, applies_, rate_);
    }

    // Returns whether this was the last presentation.
    bool end_presentation()
    {
        if (applies_) in_batch_ = 0;
        step = -1;
        return ++presentation == n_presentations_;
    }

private:
    struct Arrival { int32_t step, synapse; };
    struct Set {
        std::vector<Arrival> arrivals;
        std::vector<double> gradient;  // of the batch
    };
    std::vector<Set> sets_;
    int64_t n_presentations_ = 0;
    Baseline baseline_;
    // Steps whose arrivals count: a spike that arrives in the last step has no effect.
    int n_recorded_ = STEPS - 1;
    int in_batch_ = 0;
    bool is_over_ = false, at_once_ = false, applies_ = false;
    double rate_ = 0.0;
};

// The object with this name, shared by several generated files.
template <class Kind>
Kind& shared(const std::string& name)
{
    static std::map<std::string, Kind> all;
    return all[name];
}

}  // namespace glmbrian

#endif  // GLMBRIAN_TRAINER_HPP
