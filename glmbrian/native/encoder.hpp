// Rate encoding in compiled programs: glmbrian/encoding.py.
#pragma once

#include "job.hpp"

namespace glmbrian {

// Draws the spike trains of one presentation, four steps at a time, since four
// 16-bit draws share one hash.  `spikes` lists the spiking inputs of each step and
// is the record that the gradient needs.
class Encoder {
public:
    struct Step { int count; std::vector<int32_t> index; };
    std::vector<Step> spikes;

    explicit Encoder(const Job& job) : spikes(N_STEPS), data_(job.data), key_(job.input_key)
    {
        for (auto& step : spikes) step.index.resize(N_INPUTS + 1);
        active_.resize(N_INPUTS + 1);
        level_.resize(N_INPUTS + 1);
        const size_t values = (size_t)job.n_items * N_INPUTS;
        if (data_ == Data::levels)
            levels_ = read_array<uint16_t>("job/data.bin", values);
        else
            bytes_ = read_array<uint8_t>("job/data.bin", data_ == Data::trains ? values * N_STEPS : values);
        for (int value = 0; value < 256; value++)
            level_of_byte_[value] = (uint16_t)std::nearbyint(value * (65536.0 / 510.0));
    }

    void begin(int64_t item, int64_t presentation)
    {
        item_ = item;
        base_ = hash(key_, (uint64_t)presentation);
        n_active_ = 0;
        if (data_ == Data::bytes)
            list_active(&bytes_[(size_t)item * N_INPUTS], level_of_byte_);
        else if (data_ == Data::levels)
            list_active(&levels_[(size_t)item * N_INPUTS], nullptr);
    }

    // The level of an input in this presentation.
    int level(int i) const
    {
        const size_t index = (size_t)item_ * N_INPUTS + i;
        return data_ == Data::levels ? levels_[index] : level_of_byte_[bytes_[index]];
    }

    const Step& draw(int step)
    {
        if (data_ == Data::trains)
            copy_train(step);
        else if (step % 4 == 0)
            draw_four(step);
        return spikes[step];
    }

private:
    Data data_;
    uint64_t key_, base_;
    int64_t item_;
    std::vector<uint8_t> bytes_;
    std::vector<uint16_t> levels_;
    uint16_t level_of_byte_[256];
    // Inputs that can spike in this presentation: most pixels of an image cannot.
    int n_active_;
    std::vector<int32_t> active_;
    std::vector<uint16_t> level_;

    template <class T>
    void list_active(const T* values, const uint16_t* level_of)
    {
        int n = 0;
        for (int i = 0; i < N_INPUTS; i++) {
            active_[n] = i;
            level_[n] = level_of ? level_of[values[i]] : values[i];
            n += values[i] != 0;
        }
        n_active_ = n;
    }

    void draw_four(int step)
    {
        const int n_steps = std::min(4, N_STEPS - step);
        int32_t* index[4];
        int count[4] = {0, 0, 0, 0};
        for (int s = 0; s < n_steps; s++) index[s] = spikes[step + s].index.data();
        for (int a = 0; a < n_active_; a++) {
            const int32_t i = active_[a];
            uint64_t bits = hash(base_, ((uint64_t)(step / 4) << 32) | (uint64_t)i);
            for (int s = 0; s < n_steps; s++, bits >>= 16) {
                index[s][count[s]] = i;  // kept only if the count moves on
                count[s] += (uint16_t)bits < level_[a];
            }
        }
        for (int s = 0; s < n_steps; s++) spikes[step + s].count = count[s];
    }

    void copy_train(int step)
    {
        const uint8_t* train = &bytes_[((size_t)item_ * N_STEPS + step) * N_INPUTS];
        int n = 0;
        for (int i = 0; i < N_INPUTS; i++) {
            spikes[step].index[n] = i;
            n += train[i] != 0;
        }
        spikes[step].count = n;
    }
};

}  // namespace glmbrian
