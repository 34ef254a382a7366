// Training between the time steps of a user's network with a glm.Trainer, in generated
// C++ code.
//
// glmbrian/training/trainer.py does the same with NumPy, and the tests compare the two.
// glmbrian/training/trainer_cpp.py generates the code that calls this file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gradients.hpp"

namespace glmbrian {

// Training of NEURONS neurons in presentations of STEPS steps.  A *set* is the weights of one
// GLMSynapses, or the feedback weights, treated as a synapse from each neuron to itself.
template <int STEPS, int NEURONS>
class Trainer {
public:
    double u[STEPS][NEURONS], grad[STEPS][NEURONS];  // potentials of this presentation, and their errors
    bool emitted[STEPS][NEURONS];  // spikes of this presentation, if the neurons are free
    int64_t presentation = 0;
    int step = -1;  // of the presentation; below 0 between presentations and after the last

    // Returns whether a presentation begins, or training ends, with this step.
    bool begin_step(int64_t n_presentations)
    {
        if (is_over_) return false;
        n_presentations_ = n_presentations;
        is_over_ = presentation == n_presentations;
        if (is_over_) return true;
        return ++step == 0;
    }

    // A spike that arrives in the last step has no effect in this presentation.
    void record(size_t set, int synapse)
    {
        if (step < 0 || step == STEPS - 1) return;
        if (sets_.size() <= set) sets_.resize(set + 1);
        sets_[set].arrivals.push_back({step, synapse});
    }

    // Returns whether the presentation is over, so that it can be learned.
    template <class Real>
    bool end_step(const Real* potential, int batch_size, double learning_rate)
    {
        if (step < 0) return false;
        std::copy_n(potential, NEURONS, u[step]);
        if (step < STEPS - 1) return false;
        in_batch_++;
        at_once_ = batch_size == 1;
        applies_ = in_batch_ == batch_size || presentation + 1 == n_presentations_;
        rate_ = learning_rate / in_batch_;
        return true;
    }

    // change[t][i * K + k] is the gradient in the input that arrives at neuron i in step t.
    template <int K, int W>
    void correlate_all(const double (&basis)[W][K], std::vector<double>& change) const
    {
        const size_t row = (size_t)NEURONS * K;
        change.resize(STEPS * row);
        for (int t = 0; t < STEPS - 1; t++) correlate(grad, basis, t, 1.0, &change[t * row]);
    }

    // `targets` holds the postsynaptic neuron of each of the `n` synapses, and is null for
    // the feedback weights.
    template <int K, class Real>
    void learn(size_t set, const std::vector<double>& change, size_t n, const int32_t* targets,
               Real* const (&weights)[K])
    {
        if (sets_.size() <= set) sets_.resize(set + 1);
        auto& arrivals = sets_[set].arrivals;
        auto& gradient = sets_[set].gradient;
        if (!at_once_) gradient.resize(n * K);
        for (const Arrival& arrival : arrivals) {
            const size_t s = arrival.synapse, target = targets ? targets[s] : s;
            const double* row = &change[((size_t)arrival.step * NEURONS + target) * K];
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

    template <class Real>
    void learn_bias(Real* bias)
    {
        for (int t = 0; t < STEPS; t++)
            for (int i = 0; i < NEURONS; i++) bias_gradient_[i] += grad[t][i];
        if (!applies_) return;
        for (int i = 0; i < NEURONS; i++) bias[i] += rate_ * bias_gradient_[i];
        std::fill_n(bias_gradient_, NEURONS, 0.0);
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
    double bias_gradient_[NEURONS] = {0.0};
    int64_t n_presentations_ = 0;
    int in_batch_ = 0;
    bool is_over_ = false, at_once_ = false, applies_ = false;
    double rate_ = 0.0;
};

// The state of the glm.Trainer with this name, shared by several generated files.
template <int STEPS, int NEURONS>
Trainer<STEPS, NEURONS>& trainer(const std::string& name)
{
    static std::map<std::string, Trainer<STEPS, NEURONS>> all;
    return all[name];
}

}  // namespace glmbrian
