// What the host does between presentations of a GeNN simulation.
//
// A presentation runs in GeNN's kernels: N_STEPS steps in which the outputs respond
// and record their potentials, and in training N_STEPS more in which the inputs repeat
// their spikes (the hash gives the same draws again) and each spike adds the error of the
// target to its weights.  In between, this code on the host turns potentials into errors.
// Brian2GeNN copies the files that the generated code of glmbrian/devices/genn.py names.
#pragma once

#include "encoder.hpp"
#include "schedule.hpp"

namespace glmbrian {

class Exchange {
public:
    // Called after Brian's arrays exist: sets the synapses' weights.
    void load()
    {
        const size_t n_weights = (size_t)N_INPUTS * ROW;
        if (schedule_.job.train && schedule_.job.batch_size != 1)
            fail("job/settings.txt: batch_size must be 1 on GeNN");
        if (schedule_.job.n_averaged != 0) fail("job/settings.txt: n_averaged must be 0 on GeNN");
        if (schedule_.job.weight_decay != 0.0) fail("job/settings.txt: weight_decay must be 0 on GeNN");
        const auto all = read_numbers(
            "job/parameters.bin", n_weights + N_OUTPUTS * (N_FEEDBACK + 1), true);
        const double* value = all.data();
        for (size_t pair = 0; pair < (size_t)N_INPUTS * N_OUTPUTS; pair++)
            for (int k = 0; k < N_BASIS; k++) weight(k)[pair] = *value++;
        own_.load(value);
    }

    // Called for the outputs at the start of a phase, before the inputs.
    void outputs_turn()
    {
        if (phase_ == respond) take_response();
        const bool learns_next = phase_ == respond && schedule_.job.train;
        if (phase_ == repeat || (phase_ == respond && !learns_next)) schedule_.advance();
        phase_ = learns_next ? repeat : respond;
        if (phase_ == respond) encoder_.begin(schedule_.item(), schedule_.presentation());
    }

    // New values of the outputs' variables.
    double record(int t, int i) const
    {
        const int r = i / N_CLASSES;
        return phase_ == repeat ? grad_[r][t][i % N_CLASSES] * schedule_.sample_weight(r) : 0.0;
    }
    double rate(int i) const
    {
        return phase_ == repeat ? schedule_.learning_rate(i / N_CLASSES) : 0.0;
    }
    double bias(int i) const { return own_.bias[i]; }
    double feedback(int k, int i) const { return own_.feedback[i * N_FEEDBACK + k]; }
    int clamp(int i) const
    {
        if (!schedule_.job.train) return 0;
        // In the kernels, neurons clamped to 1 spike every `period` steps.
        return phase_ == respond && schedule_.desired(period() - 1, i % N_CLASSES) ? 1 : -1;
    }
    int period() const { return (int)std::min(schedule_.job.target_period, (int64_t)INT32_MAX); }
    int64_t presentation() const { return schedule_.presentation(); }
    int input_key_low() const { return (int)(uint32_t)schedule_.job.input_key; }
    int input_key_high() const { return (int)(uint32_t)(schedule_.job.input_key >> 32); }
    int output_key_low() const { return (int)(uint32_t)schedule_.job.output_key; }
    int output_key_high() const { return (int)(uint32_t)(schedule_.job.output_key >> 32); }
    double level(int i) const { return encoder_.level(i); }

    // Called after the last step, when the weights are back in Brian's arrays.
    void finish()
    {
        if (phase_ == respond) take_response();
        schedule_.advance();
        const int64_t phases = schedule_.job.train ? 2 : 1;
        const int64_t n_steps = schedule_.job.n_items * schedule_.job.n_epochs * phases * N_STEPS;
        if (!schedule_.is_over())
            fail("the run must take exactly " + std::to_string(n_steps) + " time steps; start it with `make run`");
        if (!schedule_.job.train) return schedule_.finish(n_steps);
        ResultFile learned("trained.bin");
        for (size_t pair = 0; pair < (size_t)N_INPUTS * N_OUTPUTS; pair++)
            for (int k = 0; k < N_BASIS; k++) learned.write(weight(k) + pair, 1);
        own_.save(learned);
        schedule_.finish(n_steps, &learned);
    }

private:
    enum { nothing, respond, repeat } phase_ = nothing;
    Schedule schedule_;
    Encoder encoder_{schedule_.job};
    OwnParameters<N_REPLICAS, N_CLASSES, N_FEEDBACK> own_;
    Trace u_[N_REPLICAS], grad_[N_REPLICAS];

    void take_response()
    {
        for (int t = 0; t < N_STEPS; t++)
            for (int i = 0; i < N_OUTPUTS; i++)
                u_[i / N_CLASSES][t][i % N_CLASSES] = recorded(t)[i];
        if (!schedule_.job.train) { report(); return; }
        const auto outputs = [this](int t, int i) -> bool { return schedule_.desired(t, i); };
        for (int r = 0; r < N_REPLICAS; r++) {
            schedule_.learn(r, u_[r], outputs, grad_[r]);
            own_.add_gradient(schedule_.sample_weight(r), r, outputs, grad_[r], FEEDBACK_BASIS);
            own_.apply(r, schedule_.learning_rate(r));
        }
        own_.clear();
    }

    // The simulation ran to the last step, but the report ends at the decision.
    void report()
    {
        int n_steps = N_STEPS;
        std::vector<int32_t> counts(N_CLASSES), input_counts(N_STEPS);
        for (int i = 0; i < N_CLASSES; i++)
            if (schedule_.job.early_stop && first_spike()[i] >= 0)
                n_steps = std::min(n_steps, first_spike()[i] + 1);
        for (int i = 0; i < N_CLASSES; i++)
            counts[i] = schedule_.job.early_stop ? first_spike()[i] == n_steps - 1 : spike_count()[i];
        encoder_.draw(0, n_steps);
        for (int t = 0; t < n_steps; t++) input_counts[t] = encoder_.spikes.count(t);
        schedule_.report(n_steps, input_counts.data(), {}, counts.data(), u_[0]);
    }
};

inline Exchange& exchange()
{
    static Exchange* const the_exchange = new Exchange;
    return *the_exchange;
}

}  // namespace glmbrian
