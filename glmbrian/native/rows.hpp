// The weights, and the two passes over them where training spends most of its time.
//
// A row holds the weights of one input, [output][basis].  Rows of inputs with the same
// spike pattern (see encoder.hpp) are added up in registers, in pieces that fit, and only
// the sum goes to the steps of the pattern; an update goes in the opposite direction.
// The result equals the sum that GLMSynapses compute, and tests compare the two.
#pragma once

#include "encoder.hpp"

namespace glmbrian {

// Several doubles that the compiler handles as one (an extension of GCC and Clang; their
// automatic vectorisation makes these loops many times slower).
constexpr int LANES = ROW > 4 ? 8 : ROW > 2 ? 4 : 2;
typedef double Lanes __attribute__((vector_size(LANES * sizeof(double)), may_alias));

constexpr int STRIDE = (ROW + LANES - 1) / LANES;  // from row to row, in Lanes
#ifdef __AVX512F__
constexpr int MOST_HELD = 10;  // of 32 registers
#else
constexpr int MOST_HELD = 5;  // each takes two of 16 registers, or four of 32
#endif
constexpr int N_PIECES = (STRIDE + MOST_HELD - 1) / MOST_HELD;
constexpr int PIECE = (STRIDE + N_PIECES - 1) / N_PIECES;
constexpr int LAST_PIECE = (N_PIECES - 1) * PIECE;

// Rows of doubles, each padded to whole Lanes.
class Rows {
public:
    explicit Rows(size_t n_rows)
        : memory_((n_rows + 1) * STRIDE * LANES), n_rows_(n_rows)
    {
        const size_t past = (uintptr_t)memory_.data() % sizeof(Lanes);
        first_ = reinterpret_cast<Lanes*>((char*)memory_.data() + (past ? sizeof(Lanes) - past : 0));
    }
    Rows(const Rows&) = delete;

    Lanes* lanes(size_t row) { return first_ + row * STRIDE; }
    const Lanes* lanes(size_t row) const { return first_ + row * STRIDE; }
    double* operator[](size_t row) { return (double*)lanes(row); }
    size_t size() const { return n_rows_; }

private:
    std::vector<double> memory_;
    size_t n_rows_;
    Lanes* first_;
};

template <int SIZE>
void gather_piece(const Spikes& spikes, const Rows& weights, int at, int begin, Rows& arrived)
{
    for (int four = spikes.first_four; four < spikes.last_four; four++)
        for (int pattern = 1; pattern < 16; pattern++) {
            const int64_t* const first = spikes.first[four];
            if (first[pattern] == first[pattern + 1]) continue;
            Lanes held[SIZE] = {{0.0}};
            for (int64_t n = first[pattern]; n < first[pattern + 1]; n++) {
                const Lanes* row = weights.lanes(spikes.input[n]) + at;
                for (int w = 0; w < SIZE; w++) held[w] += row[w];
            }
            for (int s = 0; s < 4; s++) {
                if (!(pattern >> s & 1)) continue;
                Lanes* sum = arrived.lanes(4 * four + s - begin) + at;
                for (int w = 0; w < SIZE; w++) sum[w] += held[w];
            }
        }
}

template <int SIZE>
void scatter_piece(const Spikes& spikes, const Rows& change, int at, Rows& weights)
{
    for (int four = spikes.first_four; four < spikes.last_four; four++)
        for (int pattern = 1; pattern < 16; pattern++) {
            const int64_t* const first = spikes.first[four];
            if (first[pattern] == first[pattern + 1]) continue;
            Lanes held[SIZE] = {{0.0}};
            for (int s = 0; s < 4; s++) {
                if (!(pattern >> s & 1)) continue;
                const Lanes* now = change.lanes(4 * four + s) + at;
                for (int w = 0; w < SIZE; w++) held[w] += now[w];
            }
            for (int64_t n = first[pattern]; n < first[pattern + 1]; n++) {
                Lanes* row = weights.lanes(spikes.input[n]) + at;
                for (int w = 0; w < SIZE; w++) row[w] += held[w];
            }
        }
}

// arrived[t - begin] += weights[input], for each spike of an input in step t.
inline void gather(const Spikes& spikes, const Rows& weights, int begin, Rows& arrived)
{
    for (int at = 0; at < LAST_PIECE; at += PIECE)
        gather_piece<PIECE>(spikes, weights, at, begin, arrived);
    gather_piece<STRIDE - LAST_PIECE>(spikes, weights, LAST_PIECE, begin, arrived);
}

// weights[input] += change[t], for each spike of an input in step t.
inline void scatter(const Spikes& spikes, const Rows& change, Rows& weights)
{
    for (int at = 0; at < LAST_PIECE; at += PIECE)
        scatter_piece<PIECE>(spikes, change, at, weights);
    scatter_piece<STRIDE - LAST_PIECE>(spikes, change, LAST_PIECE, weights);
}

}  // namespace glmbrian
