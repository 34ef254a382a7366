// Adversarial training: which input spikes of a presentation to change before it is learned.
//
// glmbrian/core/adversarial.py chooses the same changes, and the tests compare the two.
#pragma once

#include <cfloat>

#include "rows.hpp"

namespace glmbrian {

struct Change {
    int step;
    int32_t input;
};

// Finds the worst changes exactly, but computes the effects of some inputs only.  A bound rules out
// the others: in each group of weights the highest and the lowest one, times the sums of the negative
// and of the positive entries of the gradient.  WIDTH is the number of weights of one input, GROUP
// that of one group.
template <int WIDTH, int GROUP>
class Adversary {
public:
    explicit Adversary(const Job& job)
        : budget_(job.adversarial_budget), fraction_(job.adversarial_fraction), adds_(job.adversarial_adds),
          removes_(job.adversarial_removes), key_(job.adversarial_key()), backward_(budget_ > 0),
          highest_(budget_ ? N_GROUPS * N_INPUTS : 0), lowest_(highest_), moved_(budget_ ? N_INPUTS : 0),
          lowers_(moved_), raises_(moved_), place_(moved_.size(), -1)
    {
    }

    bool attacks(int64_t presentation) const
    {
        return budget_ && glm_unit(glm_word(key_, presentation, 0, 0)) < fraction_;
    }

    // Returns the changes that lower the log-likelihood of a label most, to first order; `change` is
    // the gradient in what arrives in each step.
    const std::vector<Change>& worst(const Rows<WIDTH>& weights, const Rows<WIDTH>& change,
                                     const Spikes& spikes, int label)
    {
        for (int a = 0; a < spikes.n_active; a++) place_[spikes.active[a]] = a;
        backward_.set(change);
        if (++n_attacks_ % 32 == 0) measure(weights);  // the bounds have loosened since
        find_bounds(change, spikes);
        worst_.clear();
        // First the inputs that were worst for this label last time, so that the bounds rule out more.
        possible_.swap(last_[label]);
        while (!possible_.empty()) try_possible(weights, spikes);
        // Without additions, only inputs that spike matter.
        const int n_rows = adds_ ? N_INPUTS : spikes.n_active;
        float limit = needed_bound();
        for (int row = 0; row < n_rows; row++) {
            const int32_t input = adds_ ? row : spikes.active[row];
            if (!(lowers_[input] >= limit)) continue;
            possible_.push_back(input);
            if (possible_.size() < AT_ONCE) continue;
            try_possible(weights, spikes);
            limit = needed_bound();
        }
        while (!possible_.empty()) try_possible(weights, spikes);
        for (int a = 0; a < spikes.n_active; a++) place_[spikes.active[a]] = -1;
        changes_.clear();
        for (const Candidate& one : worst_) {
            changes_.push_back({one.step, one.input});
            if (lowers_[one.input] != LISTED) last_[label].push_back(one.input);
            lowers_[one.input] = LISTED;
        }
        return changes_;
    }

    // Must be called when all weights may have changed.
    void measure(const Rows<WIDTH>& weights)
    {
        for (size_t input = 0; input < moved_.size(); input++) {
            moved_[input] = 0.0f;
            for (int g = 0; g < N_GROUPS; g++) {
                double up = 0.0, down = 0.0;
                for (int w = g * GROUP; w < end_of(g); w++) {
                    up = std::max(up, weights[input][w]);
                    down = std::min(down, weights[input][w]);
                }
                highest_[g * N_INPUTS + input] = (float)up;
                lowest_[g * N_INPUTS + input] = (float)-down;
            }
        }
    }

    // Must be called when `change` has been added to the weights of each spike.
    void follow(const Rows<WIDTH>& change, const Spikes& spikes)
    {
        if (!budget_) return;
        for (int four = spikes.first_four; four < spikes.last_four; four++) {
            float most[16] = {0.0f};
            for (int s = 0; s < 4 && 4 * four + s < N_STEPS - 1; s++) {
                const float in_step = largest(change[4 * four + s]);
                for (int p = 0; p < 16; p++) most[p] += p >> s & 1 ? in_step : 0.0f;
            }
            const uint8_t* pattern = spikes.pattern(four);
            for (int a = 0; a < spikes.n_active; a++) moved_[spikes.active[a]] += most[pattern[a]];
        }
    }

private:
    typedef typename Backward<WIDTH>::Lanes Lanes;
    typedef typename Backward<WIDTH>::Steps Steps;
    static constexpr size_t AT_ONCE = Backward<WIDTH>::AT_ONCE;
    static constexpr int N_GROUPS = (WIDTH + GROUP - 1) / GROUP;
    static constexpr float LISTED = -1.0f;

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
    // Of each group and input: the highest weight, and minus the lowest, when last measured; at least 0.
    std::vector<float> highest_, lowest_;
    std::vector<float> moved_;              // of each input: how far its weights may have moved since
    std::vector<float> lowers_, raises_;    // of each input: the most that a spike lowers or raises the log-likelihood
    std::vector<int32_t> place_;            // of each input: its place among the active ones, or -1
    std::vector<int32_t> last_[N_CLASSES];  // inputs that were worst last time, for each label
    std::vector<int32_t> possible_;         // inputs to try
    std::vector<Candidate> worst_;          // a heap
    std::vector<Change> changes_;
    int64_t n_attacks_ = 0;

    bool is_full() const { return (int64_t)worst_.size() == budget_; }

    // Smaller effects do not count, since compiled code may flush them to 0.
    static float least() { return -FLT_MIN; }

    // The smallest absolute value of a derivative that may count, with room for rounding.
    double needed() const { return -0.999999 * (double)(is_full() ? worst_.front().effect : least()); }

    float needed_bound() const { return 0.9999f * (float)needed(); }

    static int end_of(int group)
    {
        const int end = (group + 1) * GROUP;
        return WIDTH % GROUP ? std::min(end, WIDTH) : end;
    }

    static float largest(const double* row)
    {
        // Compilers vectorise these loops, but would not vectorise a single one.
        constexpr int LANES = Rows<WIDTH>::LANES;
        double most[LANES] = {0.0};
        for (int at = 0; at < Rows<WIDTH>::STRIDE; at++)
            for (int lane = 0; lane < LANES; lane++)
                most[lane] = std::max(most[lane], std::abs(row[at * LANES + lane]));
        return (float)*std::max_element(most, most + LANES);
    }

    void find_bounds(const Rows<WIDTH>& change, const Spikes& spikes)
    {
        float* __restrict lowers = lowers_.data();
        float* __restrict raises = raises_.data();
        float total = 0.0f;
        std::fill_n(lowers, N_INPUTS, 0.0f);
        std::fill_n(raises, N_INPUTS, 0.0f);
        for (int g = 0; g < N_GROUPS; g++) {
            double most_up = 0.0, most_down = 0.0;
            for (int t = 0; t < N_STEPS - 1; t++) {
                double up = 0.0, down = 0.0;
                for (int w = g * GROUP; w < end_of(g); w++) {
                    up += std::max(change[t][w], 0.0);
                    down -= std::min(change[t][w], 0.0);
                }
                most_up = std::max(most_up, up);
                most_down = std::max(most_down, down);
            }
            const float plus = (float)most_up, minus = (float)most_down;
            total += plus + minus;
            const float* __restrict highest = highest_.data() + g * N_INPUTS;
            const float* __restrict lowest = lowest_.data() + g * N_INPUTS;
            for (int i = 0; i < N_INPUTS; i++) {
                lowers[i] += minus * highest[i] + plus * lowest[i];
                raises[i] += plus * highest[i] + minus * lowest[i];
            }
        }
        for (int i = 0; i < N_INPUTS; i++) {
            lowers[i] += total * moved_[i];
            raises[i] += total * moved_[i];
        }
        // Only spikes that are there can be removed.
        if (!removes_) return;
        for (int a = 0; a < spikes.n_active; a++) {
            float& bound = lowers[spikes.active[a]];
            bound = std::max(bound, raises[spikes.active[a]]);
        }
    }

    // Compares changes to some inputs, the last in `possible_`, with the worst so far.
    void try_possible(const Rows<WIDTH>& weights, const Spikes& spikes)
    {
        const size_t n = std::min(AT_ONCE + 0, possible_.size());
        const int32_t* const inputs = possible_.data() + possible_.size() - n;
        const double* rows[AT_ONCE];
        for (size_t s = 0; s < AT_ONCE; s++) rows[s] = weights[inputs[std::min(s, n - 1)]];
        for (int at = 0; at < Steps::STRIDE; at++) {
            Lanes products[AT_ONCE];
            backward_.multiply(rows, at, products);
            // Usually none is large enough.
            const double limit = needed();
            auto is_large = products[0] != products[0];
            for (const Lanes& product : products) is_large |= (product >= limit) | (product <= -limit);
            bool is_any = false;
            for (int t = 0; t < Steps::LANES; t++) is_any |= is_large[t] != 0;
            if (!is_any) continue;
            const int first = at * Steps::LANES, end = std::min(Steps::LANES + 0, N_STEPS - 1 - first);
            for (size_t s = 0; s < n; s++)
                for (int t = 0; t < end; t++)
                    if (std::abs(products[s][t]) >= limit) consider(products[s][t], first + t, inputs[s], spikes);
        }
        for (size_t s = 0; s < n; s++) lowers_[inputs[s]] = 0.0f;
        possible_.resize(possible_.size() - n);
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
