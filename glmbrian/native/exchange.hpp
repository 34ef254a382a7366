// What the host does between presentations of a GeNN simulation.
//
// A presentation runs in GeNN's kernels: N_STEPS steps in which the outputs respond, emit the desired
// spikes in training, and record their potentials, and in training N_STEPS more in which the inputs repeat
// their spikes (the hash gives the same draws again) and each spike adds the error of the
// target to its weights, and to their mean over the last epochs, times the fraction of these epochs
// that end later.  In between, the host turns potentials into errors; it averages biases and feedback
// weights itself.
// Hidden layers only respond: they are tested here, not trained.
// Brian2GeNN copies the files that the generated code of glmbrian/devices/genn.py names.
#ifndef GLMBRIAN_EXCHANGE_HPP
#define GLMBRIAN_EXCHANGE_HPP

#include "encoder.hpp"
#include "updates.hpp"

namespace glmbrian {

class Exchange {
public:
    // Called after Brian's arrays exist: sets the synapses' weights.
    void load()
    {
        if (schedule_.job.train && schedule_.job.batch_size != 1)
            fail("job/settings.txt: batch_size must be 1 on GeNN");
        if (schedule_.job.weight_decay != 0.0) fail("job/settings.txt: weight_decay must be 0 on GeNN");
        if (schedule_.job.clip_norm != 0.0) fail("job/settings.txt: clip_norm must be 0 on GeNN");
        if (schedule_.job.adversarial_budget != 0) fail("job/settings.txt: adversarial_budget must be 0 on GeNN");
        size_t n_parameters = 0;
        for (const Layer& layer : LAYERS)
            n_parameters += n_weights(layer) + (size_t)layer.n_neurons * (layer.n_feedback + 1);
        const auto all = read_numbers("job/parameters.bin", n_parameters, true);
        const double* value = all.data();
        for (int number = 0; number < N_HIDDEN; number++) {
            const Layer& layer = LAYERS[number];
            const double* own = load_weights(layer, value);
            value = own + layer.n_neurons * (layer.n_feedback + 1);
            own_of_hidden_[number].assign(own, value);
            feedback_[number] = own_of_hidden_[number].data();
            bias_[number] = feedback_[number] + layer.n_neurons * layer.n_feedback;
        }
        const Layer& outputs = LAYERS[N_HIDDEN];
        own_.load(load_weights(outputs, value));
        for (int k = 0; k < N_BASIS; k++)
            std::copy_n(outputs.weight(k), n_weights(outputs) / N_BASIS, mean_weight(k));
        feedback_[N_HIDDEN] = own_.feedback;
        bias_[N_HIDDEN] = own_.bias;
    }

    // Called for the outputs at the start of a phase, before all others get their new values.
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
        if (phase_ == repeat) return grad_[r][t][i % N_CLASSES] * schedule_.sample_weight(r);
        // The record shifts before spikes are decided, so they look one step ahead.
        return schedule_.job.train && t > 0 && schedule_.desired(t - 1, i % N_CLASSES);
    }
    double rate(int i) const
    {
        return phase_ == repeat ? schedule_.learning_rate(i / N_CLASSES) : 0.0;
    }
    double share(int) const { return schedule_.share_of_mean(); }
    int clamp(int) const { return !schedule_.job.train ? 0 : phase_ == respond ? 1 : -1; }

    // Values for the neurons of a layer; layers are counted from the input on.
    double bias(int layer, int i) const { return bias_[layer][i]; }
    double feedback(int layer, int k, int i) const
    {
        return feedback_[layer][i * LAYERS[layer].n_feedback + k];
    }
    int key_low(int layer) const { return (int)(uint32_t)key(layer); }
    int key_high(int layer) const { return (int)(uint32_t)(key(layer) >> 32); }
    int64_t presentation() const { return schedule_.presentation(); }

    // Values for the inputs.
    int input_key_low() const { return (int)(uint32_t)schedule_.job.input_key; }
    int input_key_high() const { return (int)(uint32_t)(schedule_.job.input_key >> 32); }
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
        if (!schedule_.job.train) return schedule_.finish(n_steps, "");
        ResultFile learned("trained.bin");
        const Layer& outputs = LAYERS[N_HIDDEN];
        const bool averages = schedule_.job.n_averaged != 0;
        for (size_t pair = 0; pair < n_weights(outputs) / N_BASIS; pair++)
            for (int k = 0; k < N_BASIS; k++)
                learned.write((averages ? mean_weight(k) : outputs.weight(k)) + pair, 1);
        updates_.save(learned, own_);
        schedule_.finish(n_steps, learned.finish());
    }

private:
    enum { nothing, respond, repeat } phase_ = nothing;
    Schedule schedule_;
    Encoder encoder_{schedule_.job};
    OwnParameters<N_REPLICAS, N_CLASSES, N_FEEDBACK> own_;
    Updates updates_{schedule_};
    std::vector<double> own_of_hidden_[N_HIDDEN + 1];  // plus one, as C++ has no empty arrays
    const double *feedback_[N_HIDDEN + 1], *bias_[N_HIDDEN + 1];
    Trace u_[N_REPLICAS], grad_[N_REPLICAS];

    static size_t n_weights(const Layer& layer)
    {
        return (size_t)layer.n_sources * layer.n_neurons * layer.n_basis;
    }

    // Gives the weights to Brian; returns what follows them.
    static const double* load_weights(const Layer& layer, const double* value)
    {
        for (size_t pair = 0; pair < n_weights(layer) / layer.n_basis; pair++)
            for (int k = 0; k < layer.n_basis; k++) layer.weight(k)[pair] = *value++;
        return value;
    }

    uint64_t key(int layer) const
    {
        return layer < N_HIDDEN ? schedule_.job.hidden_key(layer) : schedule_.job.output_key;
    }

    void take_response()
    {
        for (int t = 0; t < N_STEPS; t++)
            for (int i = 0; i < N_OUTPUTS; i++)
                u_[i / N_CLASSES][t][i % N_CLASSES] = LAYERS[N_HIDDEN].recorded(t)[i];
        if (!schedule_.job.train) { report(); return; }
        const auto outputs = [this](int t, int i) -> bool { return schedule_.desired(t, i); };
        for (int r = 0; r < N_REPLICAS; r++) {
            schedule_.learn(r, u_[r], outputs, grad_[r]);
            own_.add_gradient(schedule_.sample_weight(r), r, outputs, grad_[r], FEEDBACK_BASIS);
        }
        updates_.end_presentation(own_);
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
        std::vector<double> hidden_counts(N_HIDDEN, 0.0);
        for (int number = 0; number < N_HIDDEN; number++)
            for (int t = 0; t < n_steps; t++) {
                const double* spiked = LAYERS[number].recorded(t);
                hidden_counts[number] += std::count(spiked, spiked + LAYERS[number].n_neurons, 1.0);
            }
        schedule_.report(n_steps, input_counts.data(), hidden_counts, counts.data(), u_[0]);
    }
};

inline Exchange& exchange()
{
    static Exchange* const the_exchange = new Exchange;
    return *the_exchange;
}

}  // namespace glmbrian

#endif  // GLMBRIAN_EXCHANGE_HPP
