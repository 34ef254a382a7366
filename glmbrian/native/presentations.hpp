// Presentations in generated C++ code: what happens between the time steps of the
// Brian 2 model when a classifier is trained or tested as a compiled program.
//
// Brian's generated code filters, thresholds and resets the neurons.  The operations
// here are called from it, at four points of each time step:
//
//   begin_step   (slot start)       begins the next presentation if the last is over
//   emit         (slot thresholds)  makes the inputs spike
//   propagate    (slot synapses)    adds the weights of spiking inputs to the neurons
//   end_step     (slot end)         records, decides, and applies the gradient update
//
// glmbrian/devices/runtime.py is the plain twin of this file: it does the same with
// NumPy, GLMSynapses and RateEncoder, and the tests hold the two to each other.
#pragma once

#include "encoder.hpp"
#include "schedule.hpp"

namespace glmbrian {

class Presentations {
public:
    Presentations() : encoder_(schedule_.job), weights_((size_t)N_INPUTS * ROW)
    {
        const Job& job = schedule_.job;
        const auto all = read_array<double>(
            "job/parameters.bin", weights_.size() + N_OUTPUTS * (N_FEEDBACK + 1));
        std::copy_n(all.begin(), weights_.size(), weights_.begin());
        own_.load(all.data() + weights_.size());
        give_to_brian();
        if (job.batch_size > 1) gradient_.resize(weights_.size());
        neuron_key_low()[0] = (int32_t)(uint32_t)job.output_key;
        neuron_key_high()[0] = (int32_t)(uint32_t)(job.output_key >> 32);
    }

    void begin_step()
    {
        if (step_ == 0) begin_presentation();
        if (!schedule_.job.train) return;
        std::fill_n(clamp(), N_OUTPUTS, -1);
        if (schedule_.job.rate && schedule_.desired(step_))
            for (int r = 0; r < N_REPLICAS; r++) clamp()[r * N_CLASSES + schedule_.label()] = 1;
    }

    void emit()
    {
        const Encoder::Step& now = encoder_.draw(step_);
        std::copy_n(now.index.data(), now.count, input_spikes());
        input_spikes()[N_INPUTS] = now.count;
    }

    void propagate()
    {
        double arrived[ROW] = {0.0};
        const int32_t* spikes = input_spikes();
        const int count = spikes[N_INPUTS];
        for (int s = 0; s < count; s++) {
            const double* row = &weights_[(size_t)spikes[s] * ROW];
            for (int r = 0; r < ROW; r++) arrived[r] += row[r];
        }
        for (int k = 0; k < N_BASIS; k++)
            for (int i = 0; i < N_OUTPUTS; i++) channel(k)[i] += arrived[i * N_BASIS + k];
        n_input_spikes_ += count;
    }

    void end_step()
    {
        const double* u = potential();
        for (int r = 0; r < N_REPLICAS; r++, u += N_CLASSES) std::copy_n(u, N_CLASSES, u_[r][step_]);
        const int32_t* spikes = output_spikes();
        const int count = spikes[N_OUTPUTS];
        for (int s = 0; s < count; s++) spike_count_[spikes[s]] += 1;
        step_++;
        n_steps_run_++;
        if (step_ < N_STEPS && !(schedule_.job.early_stop && count > 0)) return;
        if (schedule_.job.train)
            update();
        else
            schedule_.report(step_, n_input_spikes_, spike_count_, u_[0]);
        step_ = 0;
        if (schedule_.advance()) return;
        if (schedule_.job.train) save();
        schedule_.finish(n_steps_run_);
        stop_run();
    }

private:
    Schedule schedule_;
    Encoder encoder_;
    OwnParameters own_;
    std::vector<double> weights_, gradient_;  // [input][output][basis]
    Trace u_[N_REPLICAS], grad_[N_REPLICAS];
    int32_t spike_count_[N_OUTPUTS];
    int step_ = 0, in_batch_ = 0, learned_from_[N_REPLICAS] = {0};
    int64_t n_steps_run_ = 0, n_input_spikes_ = 0;

    void begin_presentation()
    {
        encoder_.begin(schedule_.item(), schedule_.presentation());
        neuron_presentation()[0] = (int32_t)schedule_.presentation();
        neuron_first_step()[0] = (int32_t)timestep();
        clear_filters();
        std::fill_n(spike_count_, N_OUTPUTS, 0);
        n_input_spikes_ = 0;
    }

    void update()
    {
        // A single presentation changes the weights at once; others are summed first.
        const bool at_once = schedule_.job.batch_size == 1;
        double scale[N_REPLICAS];
        for (int r = 0; r < N_REPLICAS; r++) {
            schedule_.learn(r, u_[r], grad_[r]);
            own_.add_gradient(schedule_, r, grad_[r]);
            scale[r] = schedule_.sample_weight(r) * (at_once ? schedule_.learning_rate(r) : 1.0);
            learned_from_[r] += scale[r] != 0.0;
        }
        std::vector<double>& into = at_once ? weights_ : gradient_;
        double row[ROW];
        for (int t = 0; t < N_STEPS - 1; t++) {  // spikes of the last step move nothing
            for (int r = 0; r < N_REPLICAS; r++)
                correlate(grad_[r], BASIS, t, scale[r], row + r * N_CLASSES * N_BASIS);
            const Encoder::Step& spikes = encoder_.spikes[t];
            for (int s = 0; s < spikes.count; s++) {
                double* target = &into[(size_t)spikes.index[s] * ROW];
                for (int w = 0; w < ROW; w++) target[w] += row[w];
            }
        }
        if (++in_batch_ == schedule_.job.batch_size || schedule_.is_last_of_epoch()) apply();
    }

    // The update of a batch is the learning rate times its mean gradient.
    void apply()
    {
        double rate[N_REPLICAS];
        for (int r = 0; r < N_REPLICAS; r++) {
            rate[r] = learned_from_[r] ? schedule_.learning_rate(r) / learned_from_[r] : 0.0;
            own_.apply(r, rate[r]);
            learned_from_[r] = 0;
        }
        constexpr int REPLICA_ROW = N_CLASSES * N_BASIS;
        for (size_t first = 0; first < gradient_.size(); first += REPLICA_ROW) {
            const double now = rate[first / REPLICA_ROW % N_REPLICAS];
            for (size_t w = first; w < first + REPLICA_ROW; w++) {
                weights_[w] += now * gradient_[w];
                gradient_[w] = 0.0;
            }
        }
        own_.clear();
        give_to_brian();
        in_batch_ = 0;
    }

    void give_to_brian()
    {
        std::copy_n(own_.bias, N_OUTPUTS, bias());
        for (int i = 0; i < N_OUTPUTS; i++)
            for (int k = 0; k < N_FEEDBACK; k++)
                feedback_weight(k)[i] = own_.feedback[i * N_FEEDBACK + k];
    }

    void save()
    {
        std::ofstream file("job/trained.bin", std::ios::binary);
        write_array(file, weights_.data(), weights_.size());
        own_.save(file);
        close_checked(file, "job/trained.bin");
    }
};

inline Presentations& presentations()
{
    static Presentations the_presentations;
    return the_presentations;
}

}  // namespace glmbrian
