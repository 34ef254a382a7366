// Rate encoding in compiled programs: glmbrian/core/rate_code.py.
#ifndef GLMBRIAN_ENCODER_HPP
#define GLMBRIAN_ENCODER_HPP

#include "job.hpp"

// For loops that gain from vectors as wide as the processor has; by default, GCC uses half of that.
// Not inlined, because the code around it keeps the default.
#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
#define GLMBRIAN_WIDE __attribute__((noinline, target("prefer-vector-width=512")))
#else
#define GLMBRIAN_WIDE
#endif

namespace glmbrian {

constexpr int N_FOURS = (N_STEPS + 3) / 4;

// Spikes, four steps at a time.  In four steps an input has one of 15 patterns of spikes,
// or none: bit s of a pattern is a spike in the s-th step.  Inputs with the same pattern
// have the same effect on the neurons, so the passes over the weights (rows.hpp) do
// half of the work that a list of single spikes would take.
struct Spikes {
    int first_four = 0, last_four = 0;         // the steps drawn; last_four is exclusive
    std::vector<int32_t> input;                // by four, then by pattern
    int64_t first[N_FOURS][17];                // where each pattern begins in `input`
    // Inputs that can spike in this presentation: most pixels of an image cannot.
    int n_active;
    std::vector<int32_t> active;

    // A test forgets earlier steps.
    explicit Spikes(bool train)
        : active(N_INPUTS + 1), patterns_((size_t)N_INPUTS * (train ? N_FOURS : 1)), next_four_(train ? N_INPUTS : 0)
    {
    }

    // The pattern of each active input in a four.
    uint8_t* pattern(int four) { return patterns_.data() + four * next_four_; }
    const uint8_t* pattern(int four) const { return patterns_.data() + four * next_four_; }

    // The number of spikes in a step.
    int count(int step) const
    {
        int64_t n = 0;
        const int64_t* begin = first[step / 4];
        for (int pattern = 1; pattern < 16; pattern++)
            if (pattern >> step % 4 & 1) n += begin[pattern + 1] - begin[pattern];
        return (int)n;
    }

    // Changes 0 to 1 or 1 to 0, in a step that was drawn; returns whether there is a spike now.
    bool toggle(int step, int32_t changed)
    {
        const int a = (int)(std::find(active.begin(), active.begin() + n_active, changed) - active.begin());
        if (a == n_active) {
            active[n_active++] = changed;
            for (int four = first_four; four < last_four; four++) pattern(four)[a] = 0;
        }
        return (pattern(step / 4)[a] ^= 1 << step % 4) >> step % 4 & 1;
    }

private:
    std::vector<uint8_t> patterns_;
    size_t next_four_;
};

// Draws the spike trains of one presentation.  Four steps share one hash, since each
// needs 16 bits.  A second hash is needed only if these bits equal the integer part of an
// input's level and the level has a fraction.
class Encoder {
public:
    Spikes spikes;

    explicit Encoder(const Job& job) : spikes(job.train), data_(job.data), key_(job.input_key)
    {
        level_.resize(N_INPUTS + 1);
        rest_.resize(N_INPUTS + 1);
        open_.resize(N_INPUTS);
        std::iota(spikes.active.begin(), spikes.active.end(), 0);  // in ready-made trains, any input may spike
        const size_t values = (size_t)job.n_items * N_INPUTS;
        if (data_ == Data::levels)
            levels_.open("job/data.bin", values);
        else
            bytes_.open("job/data.bin", data_ == Data::trains ? values * N_STEPS : values);
        for (int value = 0; value < 256; value++)
            level_of_byte_[value] = (uint16_t)std::nearbyint(value * (65536.0 / 510.0));
    }

    void begin(int64_t item, int64_t presentation)
    {
        item_ = item;
        base_ = glm_hash(key_, (uint64_t)presentation);
        second_base_ = glm_hash(glm_mix64(key_ + 1), (uint64_t)presentation);
        spikes.n_active = N_INPUTS;
        any_rest_ = false;
        if (data_ == Data::bytes)
            list_active(&bytes_[(size_t)item * N_INPUTS]);
        else if (data_ == Data::levels)
            list_active(&levels_[(size_t)item * N_INPUTS]);
    }

    // Prefetches the next item: in random order, the processor cannot predict it.
    void expect(int64_t item) const
    {
        if (data_ == Data::trains) return;
        const size_t first = (size_t)item * N_INPUTS;
        const char* data = data_ == Data::levels ? (const char*)&levels_[first] : (const char*)&bytes_[first];
        const size_t size = (size_t)N_INPUTS * (data_ == Data::levels ? sizeof(float) : 1);
        for (size_t line = 0; line < size; line += 64) __builtin_prefetch(data + line);
    }

    // The level of an input in this presentation.
    double level(int i) const
    {
        const size_t index = (size_t)item_ * N_INPUTS + i;
        return data_ == Data::levels ? levels_[index] : level_of_byte_[bytes_[index]];
    }

    // Sets `spikes` for the steps from `begin`, a multiple of 4, up to but not including `end`.
    void draw(int begin, int end)
    {
        spikes.first_four = begin / 4;
        spikes.last_four = (end + 3) / 4;
        int64_t n = 0;
        for (int four = spikes.first_four; four < spikes.last_four; four++) {
            if (data_ == Data::trains)
                read_patterns(four);
            else
                any_rest_ ? draw_patterns<true>(four) : draw_patterns<false>(four);
            uint8_t* pattern = spikes.pattern(four);
            if (end < 4 * four + 4)
                for (int a = 0; a < spikes.n_active; a++) pattern[a] &= (1 << end % 4) - 1;
            n = sort(four, n);
        }
    }

    // Lists the inputs again, after patterns have changed.
    void sort()
    {
        int64_t n = 0;
        for (int four = spikes.first_four; four < spikes.last_four; four++) n = sort(four, n);
    }

private:
    Data data_;
    uint64_t key_, base_, second_base_;
    int64_t item_;
    MappedArray<uint8_t> bytes_;
    MappedArray<float> levels_;
    uint16_t level_of_byte_[256];
    std::vector<uint16_t> level_;  // of each active input
    std::vector<float> rest_;      // the fraction of each level
    bool any_rest_;
    std::vector<uint8_t> open_;

    void set_level(int n, uint8_t value) { level_[n] = level_of_byte_[value]; }
    void set_level(int n, float level)
    {
        level_[n] = (uint16_t)level;
        rest_[n] = level - level_[n];
        any_rest_ |= rest_[n] != 0;
    }

    template <class T>
    void list_active(const T* values)
    {
        constexpr int AT_ONCE = sizeof(uint64_t) / sizeof(T);
        int n = 0, i = 0;
        auto list = [&](int until) {
            for (; i < until; i++) {
                spikes.active[n] = i;
                set_level(n, values[i]);
                n += values[i] != 0;
            }
        };
        while (i + AT_ONCE <= N_INPUTS) {
            uint64_t some;
            std::memcpy(&some, values + i, sizeof some);
            if (some)
                list(i + AT_ONCE);
            else
                i += AT_ONCE;
        }
        list(N_INPUTS);
        spikes.n_active = n;
    }

    template <bool ANY_REST>
    GLMBRIAN_WIDE void draw_patterns(int four)
    {
        // Local names and 64 bits throughout let compilers vectorise over inputs.
        const uint64_t base = base_, block = (uint64_t)four << 32;
        const int n = spikes.n_active;
        const int32_t* __restrict active = spikes.active.data();
        const uint16_t* __restrict levels = level_.data();
        uint8_t* __restrict pattern = spikes.pattern(four);
        uint8_t* __restrict open = open_.data();
        for (int a = 0; a < n; a++) {
            const uint64_t bits = glm_hash(base, block | (uint64_t)(uint32_t)active[a]);
            const uint64_t level = levels[a];
            pattern[a] = (uint64_t)((bits & 0xFFFF) < level)
                | (uint64_t)((bits >> 16 & 0xFFFF) < level) << 1
                | (uint64_t)((bits >> 32 & 0xFFFF) < level) << 2 | (uint64_t)(bits >> 48 < level) << 3;
            if (ANY_REST)
                open[a] = (uint64_t)((bits & 0xFFFF) == level)
                    | (uint64_t)((bits >> 16 & 0xFFFF) == level) << 1
                    | (uint64_t)((bits >> 32 & 0xFFFF) == level) << 2
                    | (uint64_t)(bits >> 48 == level) << 3;
        }
        if (!ANY_REST) return;
        for (int a = 0; a < n; a++)
            for (int s = 0; open[a] >> s; s++) {
                if (!(open[a] >> s & 1)) continue;
                const uint64_t step = 4 * (uint64_t)four + s;
                const uint64_t bits = glm_hash(second_base_, step << 32 | (uint64_t)(uint32_t)active[a]);
                const double draw = (double)(bits >> 11) * (1.0 / 9007199254740992.0);
                pattern[a] |= (draw < rest_[a]) << s;
            }
    }

    void read_patterns(int four)
    {
        const uint8_t* trains = &bytes_[(size_t)item_ * N_STEPS * N_INPUTS];
        uint8_t* pattern = spikes.pattern(four);
        std::fill_n(pattern, N_INPUTS, 0);
        for (int t = 4 * four; t < std::min(4 * four + 4, N_STEPS); t++)
            for (int i = 0; i < N_INPUTS; i++)
                pattern[i] |= (trains[(size_t)t * N_INPUTS + i] != 0) << t % 4;
    }

    // Lists the inputs with spikes by pattern, from position `n` on; returns the next position.
    int64_t sort(int four, int64_t n)
    {
        const int n_active = spikes.n_active;
        const uint8_t* of_input = spikes.pattern(four);
        const size_t most = n + n_active;
        if (spikes.input.size() < most) spikes.input.resize(2 * most);
        int64_t count[16] = {0}, place[16];
        for (int a = 0; a < n_active; a++) count[of_input[a]]++;
        int64_t* first = spikes.first[four];
        first[1] = n;
        for (int pattern = 1; pattern < 16; pattern++) {
            place[pattern] = first[pattern];
            first[pattern + 1] = first[pattern] + count[pattern];
        }
        place[0] = first[16];  // inputs without spikes; the next list overwrites them
        for (int a = 0; a < n_active; a++)
            spikes.input[place[of_input[a]]++] = spikes.active[a];
        return first[16];
    }
};

}  // namespace glmbrian

#endif  // GLMBRIAN_ENCODER_HPP
