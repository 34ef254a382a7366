// Adversarial training: which input spikes of a presentation to change before it is learned.
//
// glmbrian/core/adversarial.py chooses the same changes, and the tests compare the two.
#ifndef GLMBRIAN_ADVERSARY_HPP
#define GLMBRIAN_ADVERSARY_HPP

#include <cfloat>
#include <cstring>

#include "rows.hpp"

namespace glmbrian {

struct Change {
    int step;
    int32_t input;
};

// Finds the worst changes exactly, but computes exact effects for a few inputs only.  A copy of the
// weights with 16 bits gives the effects of all inputs, with a bound on their error, and so rules
// out most inputs.  A copy serves many attacks: the bound grows with each update of the weights.
template <int N_NEURONS, int N_FUNCTIONS>
class Adversary {
public:
    static constexpr int WIDTH = N_NEURONS * N_FUNCTIONS;

    explicit Adversary(const Job& job)
        : budget_(job.adversarial_budget), fraction_(job.adversarial_fraction), adds_(job.adversarial_adds),
          removes_(job.adversarial_removes), key_(job.adversarial_key()), backward_(budget_ > 0),
          copy_(has_copy() ? N_BLOCKS / 2 * WIDTH : 0), error_(has_copy() ? N_BLOCKS : 0),
          gradient_(has_copy() ? WIDTH * N_BOUNDED : 0), effects_(has_copy() ? N_BOUNDED * N_BLOCKS : 0),
          at_least_(has_copy() ? N_BLOCKS : 0), at_most_(has_copy() ? N_BLOCKS : 0),
          possible_(budget_ ? N_INPUTS : 0), place_(budget_ ? N_INPUTS : 0, -1)
    {
    }

    bool attacks(int64_t presentation) const
    {
        return budget_ && glm_unit(glm_word(key_, presentation, 0, 0)) < fraction_;
    }

    // Returns the changes that lower the log-likelihood most, to first order; `change` is the gradient
    // in what arrives in each step.
    const std::vector<Change>& worst(const Rows<WIDTH>& weights, const Rows<WIDTH>& change, const Spikes& spikes)
    {
        for (int a = 0; a < spikes.n_active; a++) place_[spikes.active[a]] = a;
        backward_.set(change);
        worst_.clear();
        limit_ = -least();
        if (has_copy()) {
            find_possible(weights, change, spikes);
        } else {
            n_possible_ = spikes.n_active;
            std::copy_n(spikes.active.begin(), n_possible_, possible_.begin());
        }
        for (size_t first = 0; first < n_possible_; first += AT_ONCE) try_possible(first, weights, spikes);
        for (int a = 0; a < spikes.n_active; a++) place_[spikes.active[a]] = -1;
        changes_.clear();
        for (const Candidate& one : worst_) changes_.push_back({one.step, one.input});
        return changes_;
    }

    // Must be called when `change` has been added to the weights of each spike.
    void follow(const Rows<WIDTH>& change, const Spikes& spikes)
    {
        if (!has_copy()) return;
        for (int four = spikes.first_four; four < spikes.last_four; four++) {
            float moved[16] = {0.0f};  // at most, by a pattern of spikes
            for (int s = 0; s < 4 && 4 * four + s < N_STEPS - 1; s++) {
                const float in_step = norm(change[4 * four + s]);
                for (int p = 0; p < 16; p++) moved[p] += p >> s & 1 ? in_step : 0.0f;
            }
            const uint8_t* pattern = spikes.pattern(four);
            for (int a = 0; a < spikes.n_active; a++) {
                float& error = of_input(error_, spikes.active[a]);
                error += FLT_EPSILON * error + moved[pattern[a]];  // rounded up
            }
        }
    }

    // Must be called when the weights have changed in any other way.
    void forget_copy() { n_in_vain_ = N_INPUTS; }

private:
    typedef typename Backward<WIDTH>::Lanes Lanes;
    typedef typename Backward<WIDTH>::Steps Steps;
    static constexpr size_t AT_ONCE = Backward<WIDTH>::AT_ONCE;

    // Inputs side by side, and how many steps at once leave their sums in registers.
#if defined(__AVX512F__)
    static constexpr int SIDE_BY_SIDE = 16, MOST_STEPS = 8;
#elif defined(__AVX__)
    static constexpr int SIDE_BY_SIDE = 8, MOST_STEPS = 4;
#else
    static constexpr int SIDE_BY_SIDE = 4, MOST_STEPS = 4;
#endif
    struct FloatVector { typedef float type __attribute__((vector_size(4 * SIDE_BY_SIDE), may_alias)); };
    struct BitVector { typedef uint32_t type __attribute__((vector_size(4 * SIDE_BY_SIDE), may_alias)); };
    typedef typename FloatVector::type Floats;
    typedef typename BitVector::type Bits;
    static constexpr int N_BLOCKS = (N_INPUTS + 2 * SIDE_BY_SIDE - 1) / (2 * SIDE_BY_SIDE) * 2;
    // Spikes in the last step have no effect.
    static constexpr int N_PASSES = (N_STEPS - 1 + MOST_STEPS - 1) / MOST_STEPS;
    static constexpr int STEPS_AT_ONCE = N_PASSES ? (N_STEPS - 1 + N_PASSES - 1) / N_PASSES : 1;
    static constexpr int N_BOUNDED = N_PASSES * STEPS_AT_ONCE;
    // Copies are sorted by basis function: late ones, which respond after many steps, have no effect
    // in the last steps.  Functions with at least 8 weights in all are handled together.
    static constexpr int TOGETHER = (8 + N_NEURONS - 1) / N_NEURONS;
    static constexpr int N_RUNS = (N_FUNCTIONS + TOGETHER - 1) / TOGETHER;
    static constexpr int place_of(int w) { return w % N_FUNCTIONS * N_NEURONS + w / N_FUNCTIONS; }

    // In single precision, so that devices that differ by rounding find the same effects equal.
    struct Candidate {
        float effect;
        int step;
        int32_t input;
        bool operator<(const Candidate& other) const
        {
            if (effect != other.effect) return effect < other.effect;
            return step != other.step ? step < other.step : input < other.input;
        }
    };

    const int64_t budget_;
    const double fraction_;
    const bool adds_, removes_;
    const uint64_t key_;
    Backward<WIDTH> backward_;
    Aligned<BitVector> copy_;                 // [two blocks of inputs][place], the second block in the higher bits
    int64_t n_in_vain_ = N_INPUTS;            // inputs tried since the copy was made, beyond the budget
    Aligned<FloatVector> error_;              // of each input: a bound on the norm of the error of its copy
    // Over the largest norm of the gradient in a step:
    std::vector<float> gradient_;             // minus the gradient: [place][step]
    int n_live_[N_RUNS];                      // steps up to the last in which the gradient of a run is not 0
    Aligned<FloatVector> effects_;            // how much changes lower the log-likelihood: [step][block of inputs]
    Aligned<FloatVector> at_least_, at_most_; // of each input: bounds on its largest effect
    std::vector<int32_t> possible_;           // inputs that may be among the worst
    size_t n_possible_ = 0;
    double limit_ = 0.0;                      // smaller effects are not among the worst
    std::vector<int32_t> place_;              // of each input: its place among the active ones, or -1
    std::vector<Candidate> worst_;            // a heap
    std::vector<Change> changes_;

    // Without additions, only active inputs matter, usually few.
    bool has_copy() const { return budget_ && adds_; }

    bool is_full() const { return (int64_t)worst_.size() == budget_; }

    // Smaller effects do not count, since compiled code may flush them to 0.
    static float least() { return -FLT_MIN; }

    // The smallest absolute value of a derivative that may count, with room for rounding.
    double needed() const
    {
        const double of_full = is_full() ? std::min(-(double)worst_.front().effect, (double)FLT_MAX) : 0.0;
        return std::max(limit_, 0.999999 * of_full);
    }

    static float& of_input(Aligned<FloatVector>& values, int input) { return ((float*)&values[0])[input]; }

    static double norm(const double* row)
    {
        double squares = 0.0;
        for (int w = 0; w < WIDTH; w++) squares += row[w] * row[w];
        return std::sqrt(squares);
    }

    void copy(const Rows<WIDTH>& weights)
    {
        std::vector<uint32_t> rounded(2 * WIDTH);
        for (int block = 0; block < N_BLOCKS; block += 2)
            for (int lane = 0; lane < SIDE_BY_SIDE; lane++) {
                const int input = block * SIDE_BY_SIDE + lane, other = input + SIDE_BY_SIDE;
                if (input >= N_INPUTS) break;
                of_input(error_, input) = round(weights[input], rounded.data());
                if (other < N_INPUTS) of_input(error_, other) = round(weights[other], rounded.data() + WIDTH);
                uint32_t* const copy = (uint32_t*)&copy_[block / 2 * WIDTH] + lane;
                for (int w = 0; w < WIDTH; w++)
                    copy[place_of(w) * SIDE_BY_SIDE] = rounded[w] >> 16 | (other < N_INPUTS ? rounded[WIDTH + w] : 0);
            }
        n_in_vain_ = 0;
    }

    // Sets `rounded` to the bits of a row in single precision, of which the lower 16 are 0.  Returns a
    // bound on the error, including that of products in single precision.
    static float round(const double* row, uint32_t* rounded)
    {
        double squares = 0.0, errors = 0.0;
        for (int w = 0; w < WIDTH; w++) {
            float value = (float)row[w];
            uint32_t bits;
            std::memcpy(&bits, &value, sizeof bits);
            rounded[w] = bits = (bits + 0x8000) & 0xFFFF0000;
            std::memcpy(&value, &bits, sizeof bits);
            squares += row[w] * row[w];
            errors += (row[w] - value) * (row[w] - value);
        }
        if (!(squares < 1e60)) {  // sums could be infinite, so such an input is always tried
            std::fill_n(rounded, WIDTH, 0);
            return INFINITY;
        }
        return 1.0001 * std::sqrt(errors) + (WIDTH + 4) * (FLT_EPSILON * std::sqrt(squares) + FLT_MIN);
    }

    // Lists the inputs that may be among the worst in possible_.
    void find_possible(const Rows<WIDTH>& weights, const Rows<WIDTH>& change, const Spikes& spikes)
    {
        if (n_in_vain_ >= N_INPUTS) copy(weights);
        n_possible_ = 0;
        double scale = 0.0;
        for (int t = 0; t < N_STEPS - 1; t++) scale = std::max(scale, norm(change[t]));
        if (!(scale > 0.0)) return;
        find_effects(change, scale, spikes);
        const float highest = find_bounds();
        // As many inputs as the budget, or no more than needed, have an effect above `limit`.
        // Neither is infinite: effects that are, in single precision, count as equal.
        float limit = (float)std::min(limit_ / scale, 1e31);
        float above = (float)std::min((double)std::max(limit, highest), FLT_MAX / scale);
        for (int n = 0; n < 10; n++) {
            const float middle = 0.5f * (limit + above);
            (n_inputs_above(middle) >= budget_ ? limit : above) = middle;
        }
        limit *= 0.9999f;
        limit_ = std::max(limit_, limit * scale);
        for (int i = 0; i < N_INPUTS; i++) {  // without a branch, which would be mispredicted
            possible_[n_possible_] = i;
            n_possible_ += of_input(at_most_, i) >= limit;
        }
        n_in_vain_ += std::max((int64_t)n_possible_ - budget_, INT64_C(0));
    }

    void find_effects(const Rows<WIDTH>& change, double scale, const Spikes& spikes)
    {
        std::fill_n(n_live_, N_RUNS, 0);
        for (int t = 0; t < N_STEPS - 1; t++)
            for (int w = 0; w < WIDTH; w++) {
                const float value = (float)(-change[t][w] / scale);
                // Processors are slow with products that are almost 0.
                const bool is_live = !(std::abs(value) < 1e-12f);
                gradient_[place_of(w) * N_BOUNDED + t] = is_live ? value : 0.0f;
                if (is_live) n_live_[w % N_FUNCTIONS / TOGETHER] = t + 1;
            }
        for (int block = 0; block < N_BLOCKS; block += 2)
            for (int first = 0; first < N_BOUNDED; first += STEPS_AT_ONCE) {
                Floats sums[STEPS_AT_ONCE] = {{0.0f}}, others[STEPS_AT_ONCE] = {{0.0f}};
                for (int run = 0; run < N_RUNS; run++) {
                    const int place = run * TOGETHER * N_NEURONS, end = std::min(place + TOGETHER * N_NEURONS, WIDTH + 0);
                    Prefix<STEPS_AT_ONCE>::add(n_live_[run] - first, &copy_[block / 2 * WIDTH + place],
                                               &gradient_[place * N_BOUNDED + first], end - place, sums, others);
                }
                for (int t = 0; t < STEPS_AT_ONCE; t++) {
                    effects_[(first + t) * N_BLOCKS + block] = sums[t];
                    effects_[(first + t) * N_BLOCKS + block + 1] = others[t];
                }
            }
        // A spike that is there can only be removed.
        for (int four = spikes.first_four; four < spikes.last_four; four++)
            for (int pattern = 1; pattern < 16; pattern++) {
                float* in_step[4];
                int n_spikes = 0;
                for (int s = 0; s < 4 && 4 * four + s < N_STEPS - 1; s++)
                    if (pattern >> s & 1) in_step[n_spikes++] = (float*)&effects_[(4 * four + s) * N_BLOCKS];
                for (int64_t n = spikes.first[four][pattern]; n < spikes.first[four][pattern + 1]; n++)
                    for (int spike = 0; spike < n_spikes; spike++) {
                        float& effect = in_step[spike][spikes.input[n]];
                        effect = removes_ ? -effect : 0.0f;
                    }
            }
    }

    // Adds the products of weights with the gradient, for the first n steps, at most N.
    template <int N, bool = true>
    struct Prefix {
        static void add(int n, const Bits* bits, const float* gradient, int n_weights, Floats* sums, Floats* others)
        {
            if (n < N) return Prefix<N - 1>::add(n, bits, gradient, n_weights, sums, others);
            Floats own[N], of_others[N];
            for (int t = 0; t < N; t++) own[t] = sums[t], of_others[t] = others[t];
            for (int w = 0; w < n_weights; w++, gradient += N_BOUNDED) {
                const Floats weight = (Floats)(bits[w] << 16), other = (Floats)(bits[w] & 0xFFFF0000);
                for (int t = 0; t < N; t++) {
                    own[t] += gradient[t] * weight;
                    of_others[t] += gradient[t] * other;
                }
            }
            for (int t = 0; t < N; t++) sums[t] = own[t], others[t] = of_others[t];
        }
    };
    template <bool IS_ANY>
    struct Prefix<0, IS_ANY> {
        static void add(int, const Bits*, const float*, int, Floats*, Floats*) {}
    };

    // Sets at_least_ and at_most_; returns the highest of at_least_.
    float find_bounds()
    {
        Floats highest = {0.0f};
        for (int block = 0; block < N_BLOCKS; block++) {
            Floats largest = {0.0f};
            for (int t = 0; t < N_STEPS - 1; t++) {
                const Floats effect = effects_[t * N_BLOCKS + block];
                largest = effect > largest ? effect : largest;
            }
            const Floats error = 1.0001f * error_[block];
            at_least_[block] = largest - error;
            at_most_[block] = largest + error;
            highest = at_least_[block] > highest ? at_least_[block] : highest;
        }
        float value = 0.0f;
        for (int lane = 0; lane < SIDE_BY_SIDE; lane++) value = std::max(value, (float)highest[lane]);
        return value;
    }

    int64_t n_inputs_above(float limit) const
    {
        Bits n = {0};
        for (int block = 0; block < N_BLOCKS; block++) n -= (Bits)(at_least_[block] >= limit);  // -1 where true
        int64_t sum = 0;
        for (int lane = 0; lane < SIDE_BY_SIDE; lane++) sum += n[lane];
        return sum;
    }

    // Compares changes to some inputs, the first of them possible_[first], with the worst so far.
    void try_possible(size_t first, const Rows<WIDTH>& weights, const Spikes& spikes)
    {
        const size_t n = std::min(AT_ONCE + 0, n_possible_ - first);
        const int32_t* const inputs = possible_.data() + first;
        const double* rows[AT_ONCE];
        for (size_t s = 0; s < AT_ONCE; s++) rows[s] = weights[inputs[std::min(s, n - 1)]];
        for (int at = 0; at < Steps::STRIDE; at++) {
            Lanes products[AT_ONCE];
            backward_.multiply(rows, at, products);
            // Often none is large enough.
            const double limit = needed();
            auto is_large = products[0] != products[0];
            for (const Lanes& product : products) is_large |= (product >= limit) | (product <= -limit);
            bool is_any = false;
            for (int t = 0; t < Steps::LANES; t++) is_any |= is_large[t] != 0;
            if (!is_any) continue;
            const int from = at * Steps::LANES, end = std::min(Steps::LANES + 0, N_STEPS - 1 - from);
            for (size_t s = 0; s < n; s++)
                for (int t = 0; t < end; t++)
                    if (std::abs(products[s][t]) >= limit) consider(products[s][t], from + t, inputs[s], spikes);
        }
    }

    void consider(double derivative, int step, int32_t input, const Spikes& spikes)
    {
        const int a = place_[input];
        const bool is_spike = a >= 0 && spikes.pattern(step / 4)[a] >> step % 4 & 1;
        if (!(is_spike ? removes_ : adds_)) return;
        const Candidate one = {(float)(is_spike ? -derivative : derivative), step, input};
        if (!(one.effect < least()) || (is_full() && !(one < worst_.front()))) return;
        if (is_full()) {
            std::pop_heap(worst_.begin(), worst_.end());
            worst_.pop_back();
        }
        worst_.push_back(one);
        std::push_heap(worst_.begin(), worst_.end());
    }
};

}  // namespace glmbrian

#endif  // GLMBRIAN_ADVERSARY_HPP
