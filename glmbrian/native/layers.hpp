// The layers of a network.  Each knows the one above it, so that a network is its first
// layer: Hidden<..., Hidden<..., Outputs<...>>>.  Spikes go up in each time step, and errors
// come down at the end of a presentation.
//
// glmbrian/core/layers.py does the same with NumPy, and the tests compare the two.  `Model`
// holds the sizes of a layer and Brian's variables; glmbrian/devices/cpp_standalone.py
// generates it.
#ifndef GLMBRIAN_LAYERS_HPP
#define GLMBRIAN_LAYERS_HPP

#include "schedule.hpp"
#include "synapses.hpp"

namespace glmbrian {

// What all layers have in common: the synapses that arrive, and Brian's neurons.
template <class Model, int REPLICAS, class In>
class Neurons {
public:
    static constexpr int N = Model::N_NEURONS, N_BASIS = Model::N_BASIS;

    explicit Neurons(const Job& job) : in(job) {}

    template <class Visitor>
    void visit(Visitor& visitor)
    {
        in.template visit<REPLICAS>(visitor);
        own_.visit(visitor);
    }

    // Called after each visit that changes parameters.
    void have_changed()
    {
        std::copy_n(own_.bias, N, Model::bias());
        for (int i = 0; i < N; i++)
            for (int k = 0; k < Model::N_FEEDBACK; k++)
                Model::feedback_weight(k)[i] = own_.feedback[i * Model::N_FEEDBACK + k];
    }

    void begin(int64_t presentation, int64_t first_step)
    {
        Model::presentation()[0] = presentation;
        Model::first_step()[0] = first_step;
        Model::clear_filters();
    }

    void set_key(uint64_t key)
    {
        Model::key_low()[0] = (int32_t)(uint32_t)key;
        Model::key_high()[0] = (int32_t)(uint32_t)(key >> 32);
    }

    // Adds what arrives in this step to the channels of the neurons.
    void receive(const typename In::Source& source, int step)
    {
        const double* arrived = in.arrived(source, step);
        for (int k = 0; k < N_BASIS; k++) {
            double* into = Model::channel(k);
            for (int i = 0; i < N; i++) into[i] += arrived[i * N_BASIS + k];
        }
    }

    In in;

protected:
    OwnParameters<REPLICAS, N / REPLICAS, Model::N_FEEDBACK> own_;
};

// The outputs of all replicas.
template <class Model, class In>
class Outputs : public Neurons<Model, N_REPLICAS, In> {
public:
    typedef Neurons<Model, N_REPLICAS, In> Base;

    explicit Outputs(const Job& job) : Base(job) {}

    void begin(int64_t presentation, int64_t first_step)
    {
        Base::begin(presentation, first_step);
        std::fill_n(spike_count_, N_OUTPUTS, 0);
    }

    void set_keys(const Job& job, int) { this->set_key(job.output_key); }

    void draw_spikes(int) {}  // Brian's threshold does it

    void propagate(const typename In::Source& source, int step) { this->receive(source, step); }

    void clamp(const Schedule& schedule, int step)
    {
        for (int i = 0; i < N_CLASSES; i++) {
            const int32_t wanted = schedule.desired(step, i) ? 1 : -1;
            for (int r = 0; r < N_REPLICAS; r++) Model::clamp()[r * N_CLASSES + i] = wanted;
        }
    }

    // Returns whether an output spiked in this step.
    bool end_step(const Job& job, int step)
    {
        const double* u = Model::u();
        for (int r = 0; r < N_REPLICAS; r++, u += N_CLASSES) std::copy_n(u, N_CLASSES, u_[r][step]);
        const int32_t* spikes = Model::spikes();
        const int count = spikes[N_OUTPUTS];
        for (int s = 0; s < count; s++) spike_count_[spikes[s]] += 1;
        if (job.train && !Objective::clamps_outputs) {
            std::fill_n(emitted_[step], N_OUTPUTS, false);
            for (int s = 0; s < count; s++) emitted_[step][spikes[s]] = true;
        }
        return count > 0;
    }

    void report(Schedule& schedule, int n_steps, const int32_t* input_counts, std::vector<double> hidden_counts)
    {
        schedule.report(n_steps, input_counts, hidden_counts, spike_count_, u_[0]);
    }

    // Finds the gradients with respect to the potentials, and to what arrives.
    void find_gradient(Schedule& schedule, bool counts)
    {
        for (int r = 0; r < N_REPLICAS; r++) {
            schedule.learn(r, u_[r], spiked(schedule, r), grad_[r], counts);
            for (int t = 0; t < N_STEPS - 1; t++)
                correlate(grad_[r], Model::basis(), t, this->in.change[t] + r * N_CLASSES * Model::N_BASIS);
        }
    }

    void learn(const Schedule& schedule, const typename In::Source& source, const double (&scale)[N_REPLICAS])
    {
        for (int r = 0; r < N_REPLICAS; r++)
            this->own_.add_gradient(schedule.sample_weight(r), r, spiked(schedule, r), grad_[r],
                                    Model::feedback_basis());
        this->in.learn(source, scale);
    }

private:
    Trace u_[N_REPLICAS], grad_[N_REPLICAS];
    int32_t spike_count_[N_OUTPUTS];
    bool emitted_[N_STEPS][N_OUTPUTS];  // output spikes, if they are free in training

    struct Spiked {
        const Outputs& outputs;
        int replica, label;
        int64_t period, start;
        bool operator()(int t, int i) const
        {
            return Objective::clamps_outputs ? is_desired<Objective>(t, i, label, period, start)
                                             : outputs.emitted_[t][replica * N_CLASSES + i];
        }
    };
    Spiked spiked(const Schedule& schedule, int replica) const
    {
        return {*this, replica, schedule.label(), schedule.job.target_period, schedule.job.target_start};
    }
};

// A hidden layer, and all above it.
template <class Model, class In, class Above>
class Hidden : public Neurons<Model, 1, In> {
public:
    typedef Neurons<Model, 1, In> Base;
    static constexpr int N = Model::N_NEURONS;
    // There are own kernels only with feedback; arrays are never empty.
    static constexpr int N_OWN_LAGS = Model::N_FEEDBACK ? Model::FEEDBACK_WINDOW : 0;

    explicit Hidden(const Job& job) : Base(job), above_(job) {}

    template <class Visitor>
    void visit(Visitor& visitor)
    {
        Base::visit(visitor);
        above_.visit(visitor);
    }

    void have_changed()
    {
        Base::have_changed();
        above_.have_changed();
    }

    void begin(int64_t presentation, int64_t first_step)
    {
        Base::begin(presentation, first_step);
        presentation_ = presentation;
        trains_.begin();
        above_.begin(presentation, first_step);
    }

    void set_keys(const Job& job, int number)
    {
        key_ = job.hidden_key(number);
        above_.set_keys(job, number + 1);
    }

    // As the threshold of GLMNeurons does, but in loops that can be vectorised.
    GLMBRIAN_WIDE void draw_spikes(int step)
    {
        std::copy_n(Model::u(), N, u_[step]);
        for (int i = 0; i < N; i++) draw_[i] = glm_unit(glm_word(key_, presentation_, step, i));
        for (int i = 0; i < N; i++) draw_[i] -= Activation::probability(u_[step][i]);
        int32_t* spikes = Model::spikes();
        int count = 0;
        for (int i = 0; i < N; i++) {
            spikes[count] = i;  // a branch would be hard to predict
            count += draw_[i] < 0.0;
        }
        spikes[N] = count;
        above_.draw_spikes(step);
    }

    // The neurons have spiked; the spikes arrive above.
    void propagate(const typename In::Source& source, int step)
    {
        this->receive(source, step);
        const int32_t* spikes = Model::spikes();
        trains_.add(step, spikes, spikes[N]);
        above_.propagate(trains_, step);
    }

    void clamp(const Schedule& schedule, int step) { above_.clamp(schedule, step); }

    bool end_step(const Job& job, int step) { return above_.end_step(job, step); }

    void report(Schedule& schedule, int n_steps, const int32_t* input_counts, std::vector<double> hidden_counts)
    {
        hidden_counts.push_back(trains_.count());
        above_.report(schedule, n_steps, input_counts, std::move(hidden_counts));
    }

    GLMBRIAN_WIDE void find_gradient(Schedule& schedule, bool counts)
    {
        above_.find_gradient(schedule, counts);
        above_.in.backward(in_spikes_);
        if (Model::N_FEEDBACK) find_own_kernels();
        for (int t = N_STEPS - 1; t >= 0; t--) {
            std::fill_n(spiked_, N, false);
            for (const int32_t* i = trains_.begin(t); i != trains_.end(t); i++) spiked_[*i] = true;
            // A spike also changes the neuron's own later potentials.
            for (int lag = 1; lag <= N_OWN_LAGS && t + lag < N_STEPS; lag++)
                for (int i = 0; i < N; i++) in_spikes_[t][i] += own_kernels_[lag - 1][i] * grad_[t + lag][i];
            for (int i = 0; i < N; i++)
                grad_[t][i] = Credit::template slope<Activation>(
                    u_[t][i], spiked_[i], in_spikes_[t][i], schedule.reward());
        }
        for (int t = 0; t < N_STEPS - 1; t++) correlate_wide(grad_, Model::basis(), t, this->in.change[t]);
    }

    void learn(const Schedule& schedule, const typename In::Source& source, const double (&scale)[1])
    {
        const auto spiked = [this](int t, int i) -> bool {
            return std::find(trains_.begin(t), trains_.end(t), i) != trains_.end(t);
        };
        this->own_.add_gradient(schedule.sample_weight(0), 0, spiked, grad_, Model::feedback_basis());
        this->in.learn(source, scale);
        above_.learn(schedule, trains_, scale);
    }

private:
    Above above_;
    Trains trains_;
    uint64_t key_;
    int64_t presentation_;
    double draw_[N];
    double u_[N_STEPS][N], grad_[N_STEPS][N], in_spikes_[N_STEPS][N];
    double own_kernels_[N_OWN_LAGS + 1][N];
    bool spiked_[N];

    void find_own_kernels()
    {
        for (int lag = 0; lag < N_OWN_LAGS; lag++)
            for (int i = 0; i < N; i++) {
                own_kernels_[lag][i] = 0.0;
                for (int k = 0; k < Model::N_FEEDBACK; k++)
                    own_kernels_[lag][i] +=
                        Model::feedback_basis()[lag][k] * this->own_.feedback[i * Model::N_FEEDBACK + k];
            }
    }
};

// The type of a network, from the list of its layers.  The inputs reach the first layer.
template <bool IS_FIRST, int SOURCES, int WIDTH>
struct Incoming { typedef LayerSynapses<SOURCES, WIDTH> type; };
template <int SOURCES, int WIDTH>
struct Incoming<true, SOURCES, WIDTH> { typedef InputSynapses<WIDTH> type; };

template <bool IS_FIRST, int SOURCES, class... Models>
struct Layers;

template <bool IS_FIRST, int SOURCES, class Model>
struct Layers<IS_FIRST, SOURCES, Model> {
    typedef typename Incoming<IS_FIRST, SOURCES, Model::N_NEURONS * Model::N_BASIS>::type In;
    typedef Outputs<Model, In> type;
};

template <bool IS_FIRST, int SOURCES, class Model, class Next, class... Rest>
struct Layers<IS_FIRST, SOURCES, Model, Next, Rest...> {
    typedef typename Incoming<IS_FIRST, SOURCES, Model::N_NEURONS * Model::N_BASIS>::type In;
    typedef Hidden<Model, In, typename Layers<false, Model::N_NEURONS, Next, Rest...>::type> type;
};

template <class List>
struct NetworkOf;
template <class... Models>
struct NetworkOf<List<Models...>> { typedef typename Layers<true, N_INPUTS, Models...>::type type; };

typedef NetworkOf<AllNeurons>::type Network;

}  // namespace glmbrian

#endif  // GLMBRIAN_LAYERS_HPP
