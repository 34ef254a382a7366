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
    double bias_gradient[NEURONS] = {0.0};  // of the batch

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

    void add_bias_gradient()
    {
        for (int t = 0; t < STEPS; t++)
            for (int i = 0; i < NEURONS; i++) bias_gradient[i] += grad[t][i];
    }
};

// The squared norm of a gradient.
inline double squared(const double* gradient, size_t n)
{
    double sum = 0.0;
    for (size_t at = 0; at < n; at++) sum += gradient[at] * gradient[at];
    return sum;
}

inline double finite_reward(double value)
{
    if (!std::isfinite(value)) throw std::runtime_error("glmbrian: reward must be a finite number");
    return value;
}

// Training in presentations of STEPS steps.  A *set* is the weights of one GLMSynapses, the feedback
// weights, treated as a synapse from each neuron to itself, or the biases of a group.
template <int STEPS>
class Trainer {
public:
    int64_t presentation = 0;
    int step = -1;  // of the presentation; below 0 between presentations and after the last
    bool is_test = false;  // whether this presentation is a test, which learns nothing
    bool updates = false;  // whether this presentation is the last of its batch
    int64_t n_updates = 0;

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
        own(set).arrivals.push_back({step, synapse});
    }

    bool is_last_step() const { return step == STEPS - 1; }

    // `last` is the last presentation that learns.
    void add_to_batch(int batch_size, int64_t last)
    {
        in_batch_++;
        updates = in_batch_ == batch_size || presentation == last;
        n_updates += updates;
    }

    // The fraction of training that was done before this presentation.
    double done(int64_t n_learning) const { return (double)n_learned_ / (double)n_learning; }

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

    // Adds the gradient of this presentation, times `rate`, to weights at once.  `targets` holds the
    // postsynaptic neuron of each synapse, and is null for the feedback weights.
    template <int K, class Real>
    void learn_at_once(size_t set, const std::vector<double>& change, size_t n_targets, const int32_t* targets,
                       double rate, Real* const (&weights)[K])
    {
        for_arrivals<K>(set, change, n_targets, targets, [&](size_t s, const double* row) {
            for (int k = 0; k < K; k++) weights[k][s] += rate * row[k];
        });
    }

    // Adds it to the gradient of the batch, of the `n` synapses of a set.
    template <int K>
    void add_gradient(size_t set, const std::vector<double>& change, size_t n_targets, const int32_t* targets,
                      size_t n)
    {
        std::vector<double>& gradient = own(set).gradient;
        gradient.resize(n * K);
        for_arrivals<K>(set, change, n_targets, targets, [&](size_t s, const double* row) {
            for (int k = 0; k < K; k++) gradient[s * K + k] += row[k];
        });
    }

    double* gradient(size_t set) { return own(set).gradient.data(); }

    // What shortens the mean gradient of a batch to the norm `limit`, given the squared norm of its sum.
    double clip(double limit, double squares) const
    {
        const double norm = std::sqrt(squares) / in_batch_;
        return norm > limit ? limit / norm : 1.0;
    }

    template <class Optimizer>
    void begin_update(double rate, double clip)
    {
        step_ = Optimizer::is_gradient ? rate / in_batch_ * clip : rate;
        scale_ = clip / in_batch_;
    }

    // Moves the parameters of the `n` neurons or synapses of a set, K each, and begins a new batch.
    template <class Optimizer, int K, class Real>
    void update(size_t set, const Optimizer& optimizer, double* gradient, size_t n, Real* const (&values)[K])
    {
        double* slots[Optimizer::n_slots + 1];  // arrays are never empty
        own(set).slots.resize(Optimizer::n_slots);
        for (int slot = 0; slot < Optimizer::n_slots; slot++) {
            own(set).slots[slot].resize(n * K);
            slots[slot] = own(set).slots[slot].data();
        }
        for (size_t s = 0; s < n; s++)
            for (int k = 0; k < K; k++) {
                const size_t at = s * K + k;
                const double mean = Optimizer::is_gradient ? gradient[at] : scale_ * gradient[at];
                values[k][s] += step_ * optimizer.direction(mean, slots, at);
            }
        std::fill_n(gradient, n * K, 0.0);
    }

    template <int K, class Real>
    static void decay(double factor, size_t n, Real* const (&weights)[K])
    {
        for (int k = 0; k < K; k++)
            for (size_t s = 0; s < n; s++) weights[k][s] *= factor;
    }

    // Adds the parameters of a set to their sums, and after the last update sets them to the mean.
    template <int K, class Real>
    void average(size_t set, size_t n_averaged, bool is_last, size_t n, Real* const (&values)[K])
    {
        std::vector<double>& sums = own(set).sums;
        sums.resize(n * K);
        for (size_t s = 0; s < n; s++)
            for (int k = 0; k < K; k++) {
                sums[s * K + k] += values[k][s];
                if (is_last) values[k][s] = sums[s * K + k] / n_averaged;
            }
    }

    // Returns whether this was the last presentation.
    bool end_presentation()
    {
        if (updates) in_batch_ = 0;
        n_learned_ += !is_test;
        step = -1;
        return ++presentation == n_presentations_;
    }

private:
    struct Arrival { int32_t step, synapse; };
    struct Set {
        std::vector<Arrival> arrivals;
        std::vector<double> gradient;            // of the batch
        std::vector<std::vector<double>> slots;  // what the optimiser remembers
        std::vector<double> sums;                // of the parameters after the last updates
    };
    std::vector<Set> sets_;
    int64_t n_presentations_ = 0, n_learned_ = 0;
    Baseline baseline_;
    // Steps whose arrivals count: a spike that arrives in the last step has no effect.
    int n_recorded_ = STEPS - 1;
    int in_batch_ = 0;
    bool is_over_ = false;
    double step_ = 0.0, scale_ = 0.0;  // of this update

    Set& own(size_t set)
    {
        if (sets_.size() <= set) sets_.resize(set + 1);
        return sets_[set];
    }

    // Calls `learn(s, row)` with each synapse where a spike arrived, and the gradient in its K weights.
    template <int K, class Learn>
    void for_arrivals(size_t set, const std::vector<double>& change, size_t n_targets, const int32_t* targets,
                      Learn learn)
    {
        for (const Arrival& arrival : own(set).arrivals) {
            const size_t s = arrival.synapse, target = targets ? targets[s] : s;
            learn(s, &change[((size_t)arrival.step * n_targets + target) * K]);
        }
        own(set).arrivals.clear();
    }
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
