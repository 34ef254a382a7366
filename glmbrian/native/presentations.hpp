// Presentations in generated C++ code: what happens between the time steps of the
// Brian 2 model when a classifier is trained or tested as a compiled program.
//
// Brian's generated code filters, thresholds and resets the neurons.  It calls these
// operations at three points in each time step:
//
//   begin_step   (slot start)     begins the next presentation if the last is over
//   propagate    (slot synapses)  adds the weights of spiking inputs to the neurons
//   end_step     (slot end)       records, decides, and applies the gradient update
//
// Each returns whether the program is done.  A program includes this file once;
// its other files include operations.hpp, which declares the operations.
//
// glmbrian/devices/runtime.py does the same with NumPy, GLMSynapses and RateEncoder, and
// the tests compare the two.
#pragma once

#include "operations.hpp"
#include "rows.hpp"
#include "schedule.hpp"

namespace glmbrian {

class Presentations {
public:
    Presentations()
        : encoder_(schedule_.job), weights_(N_INPUTS),
          gradient_(schedule_.job.batch_size > 1 ? N_INPUTS : 0),
          arrived_(schedule_.job.train ? N_STEPS : 4), change_(schedule_.job.train ? N_STEPS : 0)
    {
        const Job& job = schedule_.job;
        const size_t n_weights = (size_t)N_INPUTS * ROW;
        const auto all = read_numbers(
            "job/parameters.bin", n_weights + N_OUTPUTS * (N_FEEDBACK + 1), true);
        for (int i = 0; i < N_INPUTS; i++) std::copy_n(&all[(size_t)i * ROW], ROW, weights_[i]);
        own_.load(all.data() + n_weights);
        give_to_brian();
        neuron_key_low()[0] = (int32_t)(uint32_t)job.output_key;
        neuron_key_high()[0] = (int32_t)(uint32_t)(job.output_key >> 32);
    }

    bool begin_step()
    {
        if (step_ == 0) begin_presentation();
        if (step_ == drawn_to_) draw();
        if (!schedule_.job.train || !Objective::clamps_outputs) return false;
        for (int i = 0; i < N_CLASSES; i++) {
            const int32_t wanted = schedule_.desired(step_, i) ? 1 : -1;
            for (int r = 0; r < N_REPLICAS; r++) clamp()[r * N_CLASSES + i] = wanted;
        }
        return false;
    }

    bool propagate()
    {
        const double* arrived = arrived_[step_ - drawn_from_];
        for (int k = 0; k < N_BASIS; k++) {
            double* into = channel(k);
            for (int i = 0; i < N_OUTPUTS; i++) into[i] += arrived[i * N_BASIS + k];
        }
        return false;
    }

    bool end_step()
    {
        const double* u = potential();
        for (int r = 0; r < N_REPLICAS; r++, u += N_CLASSES) std::copy_n(u, N_CLASSES, u_[r][step_]);
        const int32_t* spikes = output_spikes();
        const int count = spikes[N_OUTPUTS];
        for (int s = 0; s < count; s++) spike_count_[spikes[s]] += 1;
        if (schedule_.job.train && !Objective::clamps_outputs) {
            std::fill_n(emitted_[step_], N_OUTPUTS, false);
            for (int s = 0; s < count; s++) emitted_[step_][spikes[s]] = true;
        }
        step_++;
        n_steps_run_++;
        if (step_ < N_STEPS && !(schedule_.job.early_stop && count > 0)) return false;
        if (schedule_.job.train)
            update();
        else
            schedule_.report(step_, input_spike_count_, spike_count_, u_[0]);
        step_ = drawn_to_ = 0;
        if (schedule_.advance()) return false;
        finish();
        return true;
    }

private:
    Schedule schedule_;
    Encoder encoder_;
    OwnParameters own_;
    Rows weights_, gradient_;  // of each input
    Rows arrived_, change_;    // of each step drawn
    Trace u_[N_REPLICAS], grad_[N_REPLICAS];
    int32_t spike_count_[N_OUTPUTS], input_spike_count_[N_STEPS];
    bool emitted_[N_STEPS][N_OUTPUTS];  // output spikes, if they are free in training
    int step_ = 0, drawn_from_ = 0, drawn_to_ = 0;
    int in_batch_ = 0, learned_from_[N_REPLICAS] = {0};
    int64_t n_steps_run_ = 0;

    void begin_presentation()
    {
        encoder_.begin(schedule_.item(), schedule_.presentation());
        encoder_.expect(schedule_.next_item());
        neuron_presentation()[0] = schedule_.presentation();
        neuron_first_step()[0] = timestep();
        clear_filters();
        std::fill_n(spike_count_, N_OUTPUTS, 0);
    }

    // Draws the spikes of the next steps and adds up their effect on the neurons.  A test
    // may end after any step; training uses all, but spikes in the last step have no effect.
    void draw()
    {
        const bool train = schedule_.job.train;
        drawn_from_ = step_;
        drawn_to_ = train ? N_STEPS : std::min(step_ + 4, N_STEPS);
        encoder_.draw(drawn_from_, train ? N_STEPS - 1 : drawn_to_);
        for (int t = drawn_from_; t < drawn_to_; t++) std::fill_n(arrived_[t - drawn_from_], ROW, 0.0);
        gather(encoder_.spikes, weights_, drawn_from_, arrived_);
        if (!train)
            for (int t = drawn_from_; t < drawn_to_; t++)
                input_spike_count_[t] = encoder_.spikes.count(t);
    }

    void update()
    {
        // With batches of one, change the weights directly; otherwise sum first.
        const bool at_once = schedule_.job.batch_size == 1;
        const int label = schedule_.label();
        const int64_t period = schedule_.job.target_period;
        double scale[N_REPLICAS];
        for (int r = 0; r < N_REPLICAS; r++) {
            const auto outputs = [this, r, label, period](int t, int i) -> bool {
                return Objective::clamps_outputs ? Objective::desired(t, i, label, period)
                                                 : emitted_[t][r * N_CLASSES + i];
            };
            schedule_.learn(r, u_[r], outputs, grad_[r]);
            own_.add_gradient(schedule_, r, outputs, grad_[r]);
            scale[r] = schedule_.sample_weight(r) * (at_once ? schedule_.learning_rate(r) : 1.0);
            learned_from_[r] += scale[r] != 0.0;
        }
        for (int t = 0; t < N_STEPS - 1; t++)
            for (int r = 0; r < N_REPLICAS; r++)
                correlate(grad_[r], BASIS, t, scale[r], change_[t] + r * N_CLASSES * N_BASIS);
        scatter(encoder_.spikes, change_, at_once ? weights_ : gradient_);
        if (++in_batch_ == schedule_.job.batch_size || schedule_.is_last_of_epoch()) apply();
    }

    // A batch's update is the learning rate times its mean gradient.
    void apply()
    {
        double rate[N_REPLICAS];
        for (int r = 0; r < N_REPLICAS; r++) {
            rate[r] = learned_from_[r] ? schedule_.learning_rate(r) / learned_from_[r] : 0.0;
            own_.apply(r, rate[r]);
            learned_from_[r] = 0;
        }
        for (size_t i = 0; i < gradient_.size(); i++)
            for (int w = 0; w < ROW; w++) {
                weights_[i][w] += rate[w / (N_CLASSES * N_BASIS)] * gradient_[i][w];
                gradient_[i][w] = 0.0;
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

    void finish()
    {
        if (!schedule_.job.train) return schedule_.finish(n_steps_run_);
        ResultFile learned("trained.bin");
        for (int i = 0; i < N_INPUTS; i++) learned.write(weights_[i], ROW);
        own_.save(learned);
        schedule_.finish(n_steps_run_, &learned);
    }
};

inline Presentations& presentations()
{
    static Presentations* const the_presentations = new Presentations;
    return *the_presentations;
}

int begin_step() { return presentations().begin_step(); }
int propagate() { return presentations().propagate(); }
int end_step() { return presentations().end_step(); }

}  // namespace glmbrian
