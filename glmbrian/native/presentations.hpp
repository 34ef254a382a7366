// Presentations in generated C++ code: what happens between the time steps of the
// Brian 2 model when a classifier is trained or tested as a compiled program.
//
// Brian's generated code filters, thresholds and resets the neurons.  It calls these
// operations at these points in each time step:
//
//   begin_step   (slot start)     begins the next presentation if the last is over
//   draw_hidden_spikes  (slot thresholds)  decides which hidden neurons spike
//   propagate    (slot synapses)  adds the weights of spiking inputs to the neurons
//   end_step     (slot end)       records, and applies the gradient update
//
// Each returns whether the program is done.  A program includes this file once;
// its other files include operations.hpp, which declares the operations.
//
// glmbrian/devices/runtime.py does the same with NumPy, GLMSynapses and RateEncoder, and
// the tests compare the two.
#ifndef GLMBRIAN_PRESENTATIONS_HPP
#define GLMBRIAN_PRESENTATIONS_HPP

#include "adversary.hpp"
#include "layers.hpp"
#include "operations.hpp"
#include "updates.hpp"

namespace glmbrian {

class Presentations {
public:
    Presentations() : encoder_(schedule_.job), network_(schedule_.job), adversary_(schedule_.job)
    {
        const Job& job = schedule_.job;
        if (job.adversarial_budget && !Objective::clamps_outputs)
            fail("job/settings.txt: adversarial_budget must be 0, as the objective does not clamp the outputs");
        updates_.load(network_, N_PARAMETERS);
        network_.set_keys(job, 0);
    }

    bool begin_step()
    {
        if (step_ == 0) begin_presentation();
        if (step_ == drawn_to_) draw();
        if (schedule_.job.train && Objective::clamps_outputs) network_.clamp(schedule_, step_);
        return false;
    }

    bool draw_hidden_spikes()
    {
        network_.draw_spikes(step_);
        return false;
    }

    bool propagate()
    {
        network_.propagate(encoder_.spikes, step_);
        return false;
    }

    bool end_step()
    {
        const bool any_spike = network_.end_step(schedule_.job, step_);
        step_++;
        n_steps_run_++;
        if (step_ < N_STEPS && !(schedule_.job.early_stop && any_spike)) return false;
        if (schedule_.job.train && !is_attacked_ && adversary_.attacks(schedule_.presentation())) {
            attack();
            return false;
        }
        is_attacked_ = false;
        if (schedule_.job.train)
            update();
        else
            network_.report(schedule_, step_, input_spike_count_, {});
        step_ = drawn_to_ = 0;
        if (schedule_.advance()) return false;
        finish();
        return true;
    }

private:
    Schedule schedule_;
    Encoder encoder_;
    Network network_;
    Adversary<Network::N, Network::N_BASIS> adversary_;
    bool is_attacked_ = false;  // whether the spikes of this presentation have been changed
    int32_t input_spike_count_[N_STEPS];
    int step_ = 0, drawn_to_ = 0;
    int64_t n_steps_run_ = 0;
    Updates updates_{schedule_};

    void begin_presentation()
    {
        if (!is_attacked_) {
            encoder_.begin(schedule_.item(), schedule_.presentation());
            encoder_.expect(schedule_.next_item());
        }
        network_.begin(schedule_.presentation(), timestep());
    }

    // Draws the spikes of the next steps and adds up their effect on the neurons.  A test
    // may end after any step; training uses all, but spikes in the last step have no effect.
    void draw()
    {
        const bool train = schedule_.job.train;
        drawn_to_ = train ? N_STEPS : std::min(step_ + 4, N_STEPS);
        encoder_.draw(step_, train ? N_STEPS - 1 : drawn_to_);
        network_.in.draw(encoder_.spikes, step_, drawn_to_);
        if (!train)
            for (int t = step_; t < drawn_to_; t++) input_spike_count_[t] = encoder_.spikes.count(t);
    }

    // Changes the spikes of this presentation, all of which have been drawn, and begins it again.
    void attack()
    {
        network_.find_gradient(schedule_, false);
        const auto& worst = adversary_.worst(network_.in.weights, network_.in.change, encoder_.spikes);
        for (const Change& one : worst)
            network_.in.change_arrived(one.step, one.input, encoder_.spikes.toggle(one.step, one.input));
        encoder_.sort();
        is_attacked_ = true;
        step_ = 0;
    }

    void update()
    {
        network_.find_gradient(schedule_, true);
        double scale[N_REPLICAS];
        for (int r = 0; r < N_REPLICAS; r++) scale[r] = updates_.scale(r);
        network_.learn(schedule_, encoder_.spikes, scale);
        if (Updates::are_at_once(schedule_.job)) adversary_.follow(network_.in.change, encoder_.spikes);
        if (updates_.end_presentation(network_)) adversary_.forget_copy();
    }

    void finish()
    {
        schedule_.finish(n_steps_run_, schedule_.job.train ? updates_.finish(network_) : "");
    }
};

inline Presentations& presentations()
{
    static Presentations* const the_presentations = new Presentations;
    return *the_presentations;
}

int begin_step() { return presentations().begin_step(); }
int draw_hidden_spikes() { return presentations().draw_hidden_spikes(); }
int propagate() { return presentations().propagate(); }
int end_step() { return presentations().end_step(); }

}  // namespace glmbrian

#endif  // GLMBRIAN_PRESENTATIONS_HPP
