// The hash of core/randomness.py, for all C++ code; brian/functions.py copies it into
// Brian's functions.
#ifndef GLMBRIAN_HASH_HPP
#define GLMBRIAN_HASH_HPP

#include <cstdint>

static inline uint64_t glm_mix64(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static inline uint64_t glm_hash(uint64_t key, uint64_t counter)
{
    return glm_mix64(key + UINT64_C(0x9E3779B97F4A7C15) * (counter + 1));
}

// The draw of one neuron in one step.
static inline uint64_t glm_word(uint64_t key, int64_t presentation, int64_t step, int64_t index)
{
    uint64_t base = glm_hash(key, (uint64_t)presentation);
    if (step >> 32) base = glm_hash(base, (uint64_t)step >> 32);
    return glm_hash(base, ((uint64_t)step << 32) | (uint64_t)index);
}

// The draw as a number in [0, 1).
static inline double glm_unit(uint64_t word)
{
    return (double)(word >> 11) * (1.0 / 9007199254740992.0);
}

#endif  // GLMBRIAN_HASH_HPP
