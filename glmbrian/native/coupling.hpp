// What happens to coupled neurons in each time step, called by Brian's generated code:
// spikes add their weights to channels (add_rows), and what has reached the channels of a neuron is
// filtered into its future potentials (filter_arrived).  Only spikes and what they reach cost time.
//
// Brian compiles this as C++11, and Cython gets a copy of the text below the first include.
#ifndef GLMBRIAN_COUPLING_HPP
#define GLMBRIAN_COUPLING_HPP

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

namespace glmbrian {

// Eight lags at a time.
enum { LANES = 8 };
typedef double Lags __attribute__((vector_size(64), aligned(8), may_alias));
typedef int64_t Bits __attribute__((vector_size(64), aligned(8), may_alias));

// The basis, laid out for a ring of which the present step can be any element of a vector: a copy for
// each of these LANES phases, [phase][vector][basis function][lane], and for each vector the first
// basis function that is not 0 there and the one after the last.
struct Phases {
    int n_vectors;
    const double* values;
    const int32_t* ranges;
};

class PhasesOf {
public:
    PhasesOf(const double* matrix, int window, int n_basis, int n_vectors)
        : n_vectors_(n_vectors),
          values_((size_t)LANES * n_vectors * n_basis * LANES),
          ranges_(2 * LANES * n_vectors)
    {
        double* value = values_.data();
        int32_t* range = ranges_.data();
        for (int phase = 0; phase < LANES; phase++)
            for (int vector = 0; vector < n_vectors; vector++, range += 2) {
                range[0] = n_basis;
                for (int k = 0; k < n_basis; k++)
                    for (int lane = 0; lane < LANES; lane++, value++) {
                        const int lag = vector * LANES + lane - phase;
                        *value = lag >= 0 && lag < window ? matrix[lag * n_basis + k] : 0.0;
                        if (*value == 0.0) continue;
                        if (k < range[0]) range[0] = k;
                        range[1] = k + 1;
                    }
            }
    }

    Phases get() const
    {
        const Phases phases = {n_vectors_, values_.data(), ranges_.data()};
        return phases;
    }

private:
    int n_vectors_;
    std::vector<double> values_;
    std::vector<int32_t> ranges_;
};

// Adds to the rings of N neurons what has arrived in their channels.
template <int N, int K>
static inline void filter_some(double* const* channels, const int* neurons, const Phases& phases,
                               const double* values, const int32_t* ranges, double* ring, int first)
{
    double arrived[K][N];
    double* rows[N];
    const int length = phases.n_vectors * LANES;
    for (int j = 0; j < N; j++) rows[j] = ring + (size_t)neurons[j] * length;
    for (int k = 0; k < K; k++)
        for (int j = 0; j < N; j++) {
            arrived[k][j] = channels[k][neurons[j]];
            channels[k][neurons[j]] = 0.0;
        }
    int at = first * LANES;
    for (int vector = 0; vector < phases.n_vectors; vector++) {
        const int low = ranges[2 * vector], high = ranges[2 * vector + 1];
        if (low < high) {
            Lags sums[N];
            for (int j = 0; j < N; j++) sums[j] = *(const Lags*)(rows[j] + at);
            for (int k = low; k < high; k++) {
                const Lags basis = *(const Lags*)(values + (vector * K + k) * LANES);
                for (int j = 0; j < N; j++) sums[j] += basis * arrived[k][j];
            }
            for (int j = 0; j < N; j++) *(Lags*)(rows[j] + at) = sums[j];
        }
        at += LANES;
        if (at == length) at = 0;
    }
}

// The first entry of the ring in an array that has LANES more elements than the ring: where vectors
// are aligned in memory.  The last element says how many elements are left out before it.
static inline double* entries_of(double* array, size_t size)
{
    const size_t skipped = (64 - (size_t)array % 64) % 64 / sizeof(double);
    double& last = array[size + LANES - 1];
    if (last != skipped) {
        memmove(array + skipped, array + (size_t)last, size * sizeof(double));
        last = skipped;
    }
    return array + skipped;
}

// Filters the K channels of n neurons, and takes the potentials of this step out of the ring.
template <int K>
static void filter_arrived(double* const* channels, int n, const Phases& phases, double* array,
                           double* potential, int64_t step)
{
    const int length = phases.n_vectors * LANES;
    double* const ring = entries_of(array, (size_t)n * length);
    const int position = (int)(step % length), phase = position % LANES, first = position / LANES;
    const double* values = phases.values + (size_t)phase * phases.n_vectors * K * LANES;
    const int32_t* ranges = phases.ranges + 2 * phase * phases.n_vectors;
    // At most LANES - 1 are left over from the last vector of neurons.
    int reached[2 * LANES];
    int n_reached = 0;
    int i = 0;
    while (i < n) {
        int end = i + LANES;
        if (end <= n) {
            Bits any = *(const Bits*)(channels[0] + i);
            for (int k = 1; k < K; k++) any |= *(const Bits*)(channels[k] + i);
            int64_t some = 0;
            for (int lane = 0; lane < LANES; lane++) some |= any[lane];
            if (some)
                for (int lane = 0; lane < LANES; lane++)
                    if (any[lane]) reached[n_reached++] = i + lane;
        } else {
            end = n;
            for (int j = i; j < n; j++) {
                bool any = false;
                for (int k = 0; k < K; k++) any |= channels[k][j] != 0.0;
                if (any) reached[n_reached++] = j;
            }
        }
        i = end;
        if (n_reached < LANES) continue;
        filter_some<LANES, K>(channels, reached, phases, values, ranges, ring, first);
        n_reached -= LANES;
        for (int j = 0; j < n_reached; j++) reached[j] = reached[LANES + j];
    }
    const int* rest = reached;
    if (n_reached & 4) {
        filter_some<4, K>(channels, rest, phases, values, ranges, ring, first);
        rest += 4;
    }
    if (n_reached & 2) {
        filter_some<2, K>(channels, rest, phases, values, ranges, ring, first);
        rest += 2;
    }
    if (n_reached & 1) filter_some<1, K>(channels, rest, phases, values, ranges, ring, first);
    for (int j = 0; j < n; j++) {
        double& value = ring[(size_t)j * length + position];
        potential[j] = value;
        value = 0.0;
    }
}

// The synapses of each source (glmbrian/brian/rows.py).  Either runs of synapses whose numbers and
// targets are consecutive, as (first synapse, first target, length), or (synapse, target) one by one.
struct Rows {
    const int32_t* first;  // of each source in items, and the end
    const int32_t* items;
    bool are_runs;
};

// Ends the program if a value of this variable, which its code takes to be 0, was set when it started.
template <class Real>
inline bool require_zeros(const Real* values, size_t n, const char* name)
{
    for (size_t i = 0; i < n; i++)
        if (values[i] != 0.0) {
            fprintf(stderr, "%s: this program was generated without delays; build it again with them", name);
            exit(1);
        }
    return true;
}

// Adds the weights of the sources in [start, stop) that spike to the channels of their targets.
template <int K>
static void add_rows(const int32_t* spikes, int n_spikes, int start, int stop, const Rows& rows,
                     double* const* weights, double* const* channels)
{
    for (int s = 0; s < n_spikes; s++) {
        const int source = spikes[s] - start;
        if (source < 0 || source >= stop - start) continue;
        const int32_t begin = rows.first[source], end = rows.first[source + 1];
        if (rows.are_runs) {
            for (int32_t r = begin; r < end; r++) {
                const int32_t* run = rows.items + 3 * (size_t)r;
                for (int k = 0; k < K; k++) {
                    const double* __restrict from = weights[k] + run[0];
                    double* __restrict to = channels[k] + run[1];
                    for (int32_t j = 0; j < run[2]; j++) to[j] += from[j];
                }
            }
        } else {
            for (int k = 0; k < K; k++) {
                const double* __restrict from = weights[k];
                double* __restrict to = channels[k];
                for (int32_t r = begin; r < end; r++)
                    to[rows.items[2 * (size_t)r + 1]] += from[rows.items[2 * (size_t)r]];
            }
        }
    }
}

}  // namespace glmbrian

#endif  // GLMBRIAN_COUPLING_HPP
