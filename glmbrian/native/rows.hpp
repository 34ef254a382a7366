// Rows of weights, and the two passes over them where training spends most of its time.
//
// A row holds the weights of one input, [neuron][basis].  Rows of inputs with the same
// spike pattern (see encoder.hpp) are added up in registers, in pieces that fit, and only
// the sum goes to the steps of the pattern; an update goes in the opposite direction.
// The result equals the sum that GLMSynapses compute, and tests compare the two.
#pragma once

#include "encoder.hpp"

namespace glmbrian {

// Several doubles that the compiler handles as one (an extension of GCC and Clang; their
// automatic vectorisation makes these loops many times slower).
template <int LANES>
struct Vector;
template <>
struct Vector<2> { typedef double type __attribute__((vector_size(16), may_alias)); };
template <>
struct Vector<4> { typedef double type __attribute__((vector_size(32), may_alias)); };
template <>
struct Vector<8> { typedef double type __attribute__((vector_size(64), may_alias)); };

#ifdef __AVX512F__
constexpr int MOST_HELD = 13;  // of 32 registers
#else
constexpr int MOST_HELD = 5;  // each takes two of 16 registers, or four of 32
#endif

// Rows of WIDTH doubles, each padded with zeros to whole Lanes.
template <int WIDTH>
class Rows {
public:
    static constexpr int LANES = WIDTH > 4 ? 8 : WIDTH > 2 ? 4 : 2;
    typedef typename Vector<LANES>::type Lanes;
    static constexpr int STRIDE = (WIDTH + LANES - 1) / LANES;  // from row to row, in Lanes
    static constexpr int N_PIECES = (STRIDE + MOST_HELD - 1) / MOST_HELD;
    static constexpr int PIECE = (STRIDE + N_PIECES - 1) / N_PIECES;
    static constexpr int LAST_PIECE = (N_PIECES - 1) * PIECE;

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
    const double* operator[](size_t row) const { return (const double*)lanes(row); }
    size_t size() const { return n_rows_; }

private:
    std::vector<double> memory_;
    size_t n_rows_;
    Lanes* first_;
};

template <int SIZE, int WIDTH>
void gather_piece(const Spikes& spikes, const Rows<WIDTH>& weights, int at, int begin, Rows<WIDTH>& arrived)
{
    typedef typename Rows<WIDTH>::Lanes Lanes;
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

template <int SIZE, int WIDTH>
void scatter_piece(const Spikes& spikes, const Rows<WIDTH>& change, int at, Rows<WIDTH>& weights)
{
    typedef typename Rows<WIDTH>::Lanes Lanes;
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
template <int WIDTH>
void gather(const Spikes& spikes, const Rows<WIDTH>& weights, int begin, Rows<WIDTH>& arrived)
{
    typedef Rows<WIDTH> R;
    for (int at = 0; at < R::LAST_PIECE; at += R::PIECE)
        gather_piece<R::PIECE>(spikes, weights, at, begin, arrived);
    gather_piece<R::STRIDE - R::LAST_PIECE>(spikes, weights, R::LAST_PIECE, begin, arrived);
}

// weights[input] += change[t], for each spike of an input in step t.
template <int WIDTH>
void scatter(const Spikes& spikes, const Rows<WIDTH>& change, Rows<WIDTH>& weights)
{
    typedef Rows<WIDTH> R;
    for (int at = 0; at < R::LAST_PIECE; at += R::PIECE)
        scatter_piece<R::PIECE>(spikes, change, at, weights);
    scatter_piece<R::STRIDE - R::LAST_PIECE>(spikes, change, R::LAST_PIECE, weights);
}

}  // namespace glmbrian
