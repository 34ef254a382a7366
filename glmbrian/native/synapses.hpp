// Synapses onto the neurons of a layer, from the inputs or from the layer below: their
// weights, what arrives in each step, and the updates.  WIDTH is the number of weights of
// one source, [neuron][basis].
#ifndef GLMBRIAN_SYNAPSES_HPP
#define GLMBRIAN_SYNAPSES_HPP

#include "rows.hpp"
#include "updates.hpp"

namespace glmbrian {

// The spikes of one layer in one presentation, step by step.
class Trains {
public:
    void begin() { neuron_.clear(); }
    void add(int step, const int32_t* spikes, int count)
    {
        first_[step] = (int)neuron_.size();
        neuron_.insert(neuron_.end(), spikes, spikes + count);
        first_[step + 1] = (int)neuron_.size();
    }
    const int32_t* begin(int step) const { return neuron_.data() + first_[step]; }
    const int32_t* end(int step) const { return neuron_.data() + first_[step + 1]; }
    int count() const { return (int)neuron_.size(); }

private:
    std::vector<int32_t> neuron_;
    int first_[N_STEPS + 1];
};

template <int SOURCES, int WIDTH>
class Synapses {
public:
    Rows<WIDTH> weights;
    // For each step, the gradient in what arrives in it.
    Rows<WIDTH> change;

    explicit Synapses(const Job& job)
        : weights(SOURCES), change(job.train ? N_STEPS : 0), gradient_(job.train && !Updates::are_at_once(job) ? SOURCES : 0),
          slots_(job.train ? Optimizer::n_slots * SOURCES : 0)
    {
    }

    template <int REPLICAS, class Visitor>
    void visit(Visitor& visitor)
    {
        const bool are_summed = gradient_.size();
        if (Visitor::SUMS_ONLY && !are_summed) return;
        for (int source = 0; source < SOURCES; source++) {
            double* slots[Optimizer::n_slots + 1];
            for (int s = 0; s < Optimizer::n_slots; s++) slots[s] = slots_[s * SOURCES + source];
            visit_replicas<WIDTH / REPLICAS, REPLICAS>(visitor, weights[source],
                                                       are_summed ? gradient_[source] : nullptr, slots, true);
        }
    }

protected:
    Rows<WIDTH> gradient_;  // of a batch
    Rows<WIDTH> slots_;  // of the optimiser

    // With plain gradient ascent and batches of one, the weights change directly; otherwise gradients are summed first.
    Rows<WIDTH>& learning() { return gradient_.size() ? gradient_ : weights; }

    template <size_t REPLICAS>
    void scale_change(const double (&factor)[REPLICAS])
    {
        for (int t = 0; t < N_STEPS - 1; t++) scale(change[t], factor);
    }

private:
    // Multiplies a row by one number per replica.
    template <size_t REPLICAS>
    static void scale(double* row, const double (&factor)[REPLICAS])
    {
        for (int w = 0; w < WIDTH; w++) row[w] *= factor[w / (WIDTH / REPLICAS)];
    }
};

// From the inputs, whose spikes are known several steps ahead.
template <int WIDTH>
class InputSynapses : public Synapses<N_INPUTS, WIDTH> {
public:
    typedef Spikes Source;

    explicit InputSynapses(const Job& job)
        : Synapses<N_INPUTS, WIDTH>(job), arrived_(job.train ? N_STEPS : 4) {}

    // Adds up what will arrive in the steps just drawn.
    void draw(const Spikes& spikes, int begin, int end)
    {
        drawn_from_ = begin;
        gather(spikes, this->weights, begin, end, arrived_);
    }
    const double* arrived(const Spikes&, int step) { return arrived_[step - drawn_from_]; }
    // Adds or takes away what a changed spike sends, in a step just drawn.
    void change_arrived(int step, int input, bool is_added)
    {
        const double sign = is_added ? 1.0 : -1.0;
        for (int w = 0; w < WIDTH; w++) arrived_[step - drawn_from_][w] += sign * this->weights[input][w];
    }
    template <size_t REPLICAS>
    void learn(const Spikes& spikes, const double (&scale)[REPLICAS])
    {
        this->scale_change(scale);
        scatter(spikes, this->change, this->learning());
    }

private:
    Rows<WIDTH> arrived_;  // in each step drawn
    int drawn_from_ = 0;
};

// From the neurons of the layer below.
template <int SOURCES, int WIDTH>
class LayerSynapses : public Synapses<SOURCES, WIDTH> {
public:
    typedef Trains Source;

    explicit LayerSynapses(const Job& job)
        : Synapses<SOURCES, WIDTH>(job), arrived_(1), backward_(job.train)
    {
    }

    const double* arrived(const Trains& trains, int step)
    {
        std::fill_n(arrived_[0], WIDTH, 0.0);
        for (const int32_t* source = trains.begin(step); source != trains.end(step); source++)
            add(this->weights.lanes(*source), arrived_.lanes(0));
        return arrived_[0];
    }

    // A spike in the last step has no effect.
    template <size_t REPLICAS>
    void learn(const Trains& trains, const double (&scale)[REPLICAS])
    {
        this->scale_change(scale);
        Rows<WIDTH>& learning = this->learning();
        for (int t = 0; t < N_STEPS - 1; t++)
            for (const int32_t* source = trains.begin(t); source != trains.end(t); source++)
                add(this->change.lanes(t), learning.lanes(*source));
    }

    // Sets the gradient with respect to the spikes of the sources, given that to what arrives.
    void backward(double (&in_spikes)[N_STEPS][SOURCES])
    {
        typedef Backward<WIDTH> B;
        backward_.set(this->change);
        for (int first = 0; first < SOURCES; first += B::AT_ONCE) {
            const double* rows[B::AT_ONCE];
            for (int n = 0; n < B::AT_ONCE; n++) rows[n] = this->weights[std::min(first + n, SOURCES - 1)];
            for (int at = 0; at < B::Steps::STRIDE; at++) {
                typename B::Lanes products[B::AT_ONCE];
                backward_.multiply(rows, at, products);
                const int step = at * B::Steps::LANES, end = std::min(B::Steps::LANES + 0, N_STEPS - step);
                for (int n = 0; n < B::AT_ONCE && first + n < SOURCES; n++)
                    for (int t = 0; t < end; t++) in_spikes[step + t][first + n] = products[n][t];
            }
        }
    }

private:
    typedef typename Rows<WIDTH>::Lanes Lanes;
    Rows<WIDTH> arrived_;
    Backward<WIDTH> backward_;

    static void add(const Lanes* row, Lanes* into)
    {
        for (int w = 0; w < Rows<WIDTH>::STRIDE; w++) into[w] += row[w];
    }
};

}  // namespace glmbrian

#endif  // GLMBRIAN_SYNAPSES_HPP
