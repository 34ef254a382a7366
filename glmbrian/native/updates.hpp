// Updates: how the gradients of a batch change parameters.
//
// `Optimizer` comes from glmbrian.Optimizer.cpp.  Parameters are visited in the order of
// glmbrian.devices.problem.Parameters, in *spans*, each of one replica: the synaptic weights from one source, all
// feedback weights, and all biases.
//
// glmbrian/core/updates.py does the same with NumPy, and the tests compare the two.
#ifndef GLMBRIAN_UPDATES_HPP
#define GLMBRIAN_UPDATES_HPP

#include "schedule.hpp"

namespace glmbrian {

// Parameters of one replica that lie side by side.
template <int SIZE>
struct Span {
    double* values;
    double* gradient;  // summed over the batch; null if gradients are added to the weights at once
    double* slots[Optimizer::n_slots + 1];  // what the optimiser remembers; arrays are never empty
    bool decays;
};

// Calls a visitor with each span of `size` parameters per replica, given their arrays.
template <int SIZE, int REPLICAS, class Visitor>
void visit_replicas(Visitor& visitor, double* values, double* gradient, double* const* slots, bool decays)
{
    for (int r = 0; r < REPLICAS; r++) {
        Span<SIZE> span;
        span.values = values + r * SIZE;
        span.gradient = gradient ? gradient + r * SIZE : nullptr;
        for (int s = 0; s < Optimizer::n_slots; s++) span.slots[s] = slots[s] + r * SIZE;
        span.decays = decays;
        visitor(r, span);
    }
}

// Visitors.  `SUMS_ONLY` leaves out weights to which gradients are added at once.

struct Load {
    static constexpr bool SUMS_ONLY = false;
    const double* from;
    int slot;  // below 0 for the parameters themselves

    template <int SIZE>
    void operator()(int, const Span<SIZE>& span)
    {
        std::copy_n(from, SIZE, slot < 0 ? span.values : span.slots[slot]);
        from += SIZE;
    }
};

template <class File>
struct Save {
    static constexpr bool SUMS_ONLY = false;
    File& file;
    int slot;

    template <int SIZE>
    void operator()(int, const Span<SIZE>& span) { file.write(slot < 0 ? span.values : span.slots[slot], SIZE); }
};

template <class File, class Parameters>
void save(File& file, Parameters& parameters, int slot = -1)
{
    Save<File> visitor{file, slot};
    parameters.visit(visitor);
}

template <int REPLICAS>
struct Decay {
    static constexpr bool SUMS_ONLY = false;
    double factor[REPLICAS];

    template <int SIZE>
    void operator()(int r, const Span<SIZE>& span)
    {
        if (!span.decays) return;
        for (int w = 0; w < SIZE; w++) span.values[w] *= factor[r];
    }
};

template <int REPLICAS>
struct SquaredNorm {
    static constexpr bool SUMS_ONLY = true;
    double sum[REPLICAS];

    template <int SIZE>
    void operator()(int r, const Span<SIZE>& span)
    {
        for (int w = 0; w < SIZE; w++) sum[r] += span.gradient[w] * span.gradient[w];
    }
};

// Adds what the optimiser makes of the gradient, and begins a new sum.
template <int REPLICAS>
struct Apply {
    static constexpr bool SUMS_ONLY = true;
    double rate[REPLICAS];   // the learning rate
    double count[REPLICAS];  // presentations that each replica learns from
    double clip[REPLICAS];   // what shortens the gradient
    std::vector<Optimizer>& rule;  // of each replica

    template <int SIZE>
    void operator()(int r, Span<SIZE>& span)
    {
        if (Optimizer::is_gradient) {
            const double factor = count[r] == 0.0 ? 0.0 : rate[r] / count[r] * clip[r];
            for (int w = 0; w < SIZE; w++) span.values[w] += factor * span.gradient[w];
        } else if (count[r] != 0.0) {
            const Optimizer own = rule[r];
            const double step = rate[r], scale = clip[r] / count[r];
            for (int w = 0; w < SIZE; w++)
                span.values[w] += step * own.direction(scale * span.gradient[w], span.slots, w);
        }
        std::fill_n(span.gradient, SIZE, 0.0);
    }
};

// The mean of parameters over the averaged epochs; they are saved here as into a file.
class Mean {
public:
    void write(const double* values, size_t size)
    {
        sums_.resize(std::max(sums_.size(), n_written_ + size));
        for (size_t n = 0; n < size; n++) sums_[n_written_++] += values[n];
    }
    void end_epoch()
    {
        n_written_ = 0;
        n_epochs_++;
    }
    void save(ResultFile& file) const
    {
        std::vector<double> mean(sums_);
        for (double& value : mean) value /= (double)n_epochs_;
        file.write(mean.data(), mean.size());
    }

private:
    int64_t n_epochs_ = 0;
    size_t n_written_ = 0;
    std::vector<double> sums_;
};

// Counts presentations into batches, and updates parameters.
class Updates {
public:
    explicit Updates(const Schedule& schedule) : schedule_(schedule) {}

    // Whether gradients are added to synaptic weights at once, times `scale`, and never summed.
    static bool are_at_once(const Job& job)
    {
        return job.batch_size == 1 && Optimizer::is_gradient && job.clip_norm == 0.0;
    }

    template <class Parameters>
    void load(Parameters& parameters, size_t n_parameters)
    {
        const Job& job = schedule_.job;
        load(parameters, read_numbers("job/parameters.bin", n_parameters, true).data(), -1);
        if (!job.continues) return;
        const auto all = read_numbers("job/optimizer.bin", N_REPLICAS + n_parameters * Optimizer::n_slots, true);
        std::copy_n(all.data(), N_REPLICAS, n_updates_);
        for (int slot = 0; slot < Optimizer::n_slots; slot++)
            load(parameters, all.data() + N_REPLICAS + slot * n_parameters, slot);
    }

    // What the gradients of this presentation are multiplied by as they are added.
    double scale(int r) const
    {
        const double weight = schedule_.sample_weight(r);
        return are_at_once(schedule_.job) ? weight * schedule_.learning_rate(r) : weight;
    }

    // Called when the gradients of a presentation have been added; returns whether weights have changed other
    // than at once.
    template <class Parameters>
    bool end_presentation(Parameters& parameters)
    {
        const Job& job = schedule_.job;
        bool changes = false;
        for (int r = 0; r < N_REPLICAS; r++) learned_from_[r] += scale(r) != 0.0;
        if (++in_batch_ == job.batch_size || schedule_.is_last_of_epoch()) {
            apply(parameters);
            changes = !are_at_once(job);
        }
        if (!schedule_.is_last_of_epoch()) return changes;
        if (job.weight_decay > 0.0) {
            decay(parameters);
            changes = true;
        }
        if (schedule_.is_averaged()) {
            glmbrian::save(mean_, parameters);
            mean_.end_epoch();
        }
        return changes;
    }

    // Saves the parameters, or their mean.
    template <class Parameters>
    void save(ResultFile& file, Parameters& parameters) const
    {
        if (schedule_.job.n_averaged)
            mean_.save(file);
        else
            glmbrian::save(file, parameters);
    }

    // Writes all that was learned; returns lines about it for run.txt.
    template <class Parameters>
    std::string finish(Parameters& parameters)
    {
        ResultFile learned("trained.bin");
        save(learned, parameters);
        const std::string lines = learned.finish();
        if (!Optimizer::n_slots) return lines;
        ResultFile state("trained_optimizer.bin");
        state.write(n_updates_, N_REPLICAS);
        for (int slot = 0; slot < Optimizer::n_slots; slot++) glmbrian::save(state, parameters, slot);
        return lines + state.finish();
    }

private:
    const Schedule& schedule_;
    Mean mean_;
    std::vector<Optimizer> rule_;  // of each replica, for an update
    int64_t in_batch_ = 0;
    int64_t learned_from_[N_REPLICAS] = {0};
    double n_updates_[N_REPLICAS] = {0.0};
    double total_rate_[N_REPLICAS] = {0.0};  // since the last decay

    template <class Parameters>
    static void load(Parameters& parameters, const double* values, int slot)
    {
        Load visitor{values, slot};
        parameters.visit(visitor);
        parameters.have_changed();
    }

    template <class Parameters>
    void apply(Parameters& parameters)
    {
        rule_.clear();
        Apply<N_REPLICAS> visitor{{0.0}, {0.0}, {0.0}, rule_};
        for (int r = 0; r < N_REPLICAS; r++) {
            visitor.rate[r] = schedule_.learning_rate(r);
            visitor.count[r] = (double)learned_from_[r];
            n_updates_[r] += learned_from_[r] != 0;
            rule_.emplace_back(schedule_.job.optimizer_settings.data(), n_updates_[r]);
            total_rate_[r] += visitor.rate[r];
            learned_from_[r] = 0;
        }
        clip(parameters, visitor);
        parameters.visit(visitor);
        parameters.have_changed();
        in_batch_ = 0;
    }

    template <class Parameters>
    void clip(Parameters& parameters, Apply<N_REPLICAS>& update)
    {
        std::fill_n(update.clip, N_REPLICAS, 1.0);
        const double limit = schedule_.job.clip_norm;
        if (limit == 0.0) return;
        SquaredNorm<N_REPLICAS> visitor{{0.0}};
        parameters.visit(visitor);
        for (int r = 0; r < N_REPLICAS; r++) {
            const double norm = std::sqrt(visitor.sum[r]) / std::max(update.count[r], 1.0);
            if (norm > limit) update.clip[r] = limit / norm;
        }
    }

    template <class Parameters>
    void decay(Parameters& parameters)
    {
        Decay<N_REPLICAS> visitor;
        for (int r = 0; r < N_REPLICAS; r++) {
            visitor.factor[r] = std::exp(-schedule_.job.weight_decay * total_rate_[r]);
            total_rate_[r] = 0.0;
        }
        parameters.visit(visitor);
        parameters.have_changed();
    }
};

// A copy of the parameters of a layer other than the synaptic weights, and their gradients.
template <int REPLICAS, int NEURONS, int FEEDBACK>
class OwnParameters {
public:
    static constexpr int TOTAL = REPLICAS * NEURONS;  // not N, which Brian2GeNN defines as a macro
    double bias[TOTAL], feedback[TOTAL * FEEDBACK + 1];  // a C++ array is never empty

    // Sets the feedback weights and biases, from their values in this order; returns what follows them.
    const double* load(const double* values)
    {
        std::copy_n(values, TOTAL * FEEDBACK, feedback);
        std::copy_n(values + TOTAL * FEEDBACK, TOTAL, bias);
        return values + TOTAL * (FEEDBACK + 1);
    }

    template <class Visitor>
    void visit(Visitor& visitor)
    {
        double *of_feedback[Optimizer::n_slots + 1], *of_bias[Optimizer::n_slots + 1];
        for (int s = 0; s < Optimizer::n_slots; s++) {
            of_feedback[s] = feedback_slots_[s];
            of_bias[s] = bias_slots_[s];
        }
        visit_replicas<NEURONS * FEEDBACK, REPLICAS>(visitor, feedback, feedback_gradient_, of_feedback, true);
        visit_replicas<NEURONS, REPLICAS>(visitor, bias, bias_gradient_, of_bias, false);
    }

    void have_changed() {}

    // Adds the gradient of a presentation in which neuron i spiked in step t if `spiked(t, i)`.
    template <class Spiked, int W, int K>
    void add_gradient(double weight, int replica, Spiked spiked, const double (&grad)[N_STEPS][NEURONS],
                      const double (&feedback_basis)[W][K])
    {
        const int first = replica * NEURONS;
        for (int t = 0; t < N_STEPS; t++)
            for (int i = 0; i < NEURONS; i++) bias_gradient_[first + i] += weight * grad[t][i];
        if (FEEDBACK == 0) return;
        std::vector<double> row(NEURONS * FEEDBACK);
        for (int t = 0; t < N_STEPS - 1; t++) {
            bool is_filtered = false;
            for (int i = 0; i < NEURONS; i++) {
                if (!spiked(t, i)) continue;
                if (!is_filtered) correlate(grad, feedback_basis, t, row.data());
                is_filtered = true;
                for (int k = i * FEEDBACK; k < (i + 1) * FEEDBACK; k++)
                    feedback_gradient_[first * FEEDBACK + k] += weight * row[k];
            }
        }
    }

private:
    double bias_gradient_[TOTAL] = {0.0}, feedback_gradient_[TOTAL * FEEDBACK + 1] = {0.0};
    double bias_slots_[Optimizer::n_slots + 1][TOTAL] = {{0.0}};
    double feedback_slots_[Optimizer::n_slots + 1][TOTAL * FEEDBACK + 1] = {{0.0}};
};

}  // namespace glmbrian

#endif  // GLMBRIAN_UPDATES_HPP
