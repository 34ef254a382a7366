// Rows of weights, and the two passes over them where training spends most of its time.
//
// A row holds the weights of one input, [neuron][basis].  Rows of inputs with the same
// spike pattern (see encoder.hpp) are added up in registers, in pieces that fit, and only
// the sum goes to the steps of the pattern.  An update goes in the opposite direction, or,
// for long presentations, input by input (see SCATTER_BY_INPUT).  The result equals the sum
// that GLMSynapses compute, and tests compare the two.
#ifndef GLMBRIAN_ROWS_HPP
#define GLMBRIAN_ROWS_HPP

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

constexpr int MOST_GATHERED = 4;  // with the sums of four steps

constexpr int MOST_SUMMED = 7;  // the sums of 64 patterns then fit the first-level cache

// A row of LENGTH Lanes in pieces of at most MOST.
template <int LENGTH, int MOST>
struct Pieces {
    static constexpr int NUMBER = (LENGTH + MOST - 1) / MOST;
    static constexpr int SIZE = (LENGTH + NUMBER - 1) / NUMBER;
    static constexpr int LAST = (NUMBER - 1) * SIZE;  // where the last begins
    static constexpr int LAST_SIZE = LENGTH - LAST;
};

// Zeroed Lanes where the processor reads each in one go, which std::vector does not ensure.
// `Type` has it as its `type`, since it would lose its attributes as a parameter.
template <class Type>
class Aligned {
public:
    typedef typename Type::type Lanes;

    explicit Aligned(size_t length) : memory_((length + 1) * sizeof(Lanes))
    {
        const size_t past = (uintptr_t)memory_.data() % sizeof(Lanes);
        first_ = reinterpret_cast<Lanes*>(memory_.data() + (past ? sizeof(Lanes) - past : 0));
    }
    Aligned(const Aligned&) = delete;

    Lanes& operator[](size_t at) { return first_[at]; }
    const Lanes& operator[](size_t at) const { return first_[at]; }

private:
    std::vector<char> memory_;
    Lanes* first_;
};

// Rows of WIDTH doubles, each padded with zeros to whole Lanes.
template <int WIDTH>
class Rows {
public:
    static constexpr int LANES = WIDTH > 4 ? 8 : WIDTH > 2 ? 4 : 2;
    typedef typename Vector<LANES>::type Lanes;
    static constexpr int STRIDE = (WIDTH + LANES - 1) / LANES;  // from row to row, in Lanes

    explicit Rows(size_t n_rows) : lanes_(n_rows * STRIDE), n_rows_(n_rows) {}

    Lanes* lanes(size_t row) { return &lanes_[row * STRIDE]; }
    const Lanes* lanes(size_t row) const { return &lanes_[row * STRIDE]; }
    double* operator[](size_t row) { return (double*)lanes(row); }
    const double* operator[](size_t row) const { return (const double*)lanes(row); }
    size_t size() const { return n_rows_; }

private:
    Aligned<Vector<LANES>> lanes_;
    size_t n_rows_;
};

// What a spike in each step is worth: the products of a row of weights with the gradient in what
// arrives.  Takes several rows at once, or the processor would wait for each addition.
template <int WIDTH>
class Backward {
public:
    typedef Rows<N_STEPS> Steps;
    typedef typename Steps::Lanes Lanes;
#ifdef __AVX512F__
    static constexpr int AT_ONCE = 8;
#else
    static constexpr int AT_ONCE = 4;
#endif

    explicit Backward(bool is_used) : in_each_step_(is_used ? WIDTH : 0) {}

    // Takes the gradient in what arrives in each step but the last, whose spikes have no effect.
    void set(const Rows<WIDTH>& change)
    {
        for (int w = 0; w < WIDTH; w++)
            for (int t = 0; t < N_STEPS - 1; t++) in_each_step_[w][t] = change[t][w];
    }

    // Sets `products` to the products of each row, for the Lanes of steps from at * Steps::LANES on.
    void multiply(const double* const (&rows)[AT_ONCE], int at, Lanes (&products)[AT_ONCE]) const
    {
        for (Lanes& product : products) product = Lanes{0.0};
        for (int w = 0; w < WIDTH; w++)
            for (int n = 0; n < AT_ONCE; n++) products[n] += rows[n][w] * in_each_step_.lanes(w)[at];
    }

private:
    Steps in_each_step_;  // a row for each weight, zero in the last step
};

template <int SIZE, int WIDTH>
void gather_piece(const Spikes& spikes, const Rows<WIDTH>& weights, int at, int begin, int end, Rows<WIDTH>& arrived)
{
    typedef typename Rows<WIDTH>::Lanes Lanes;
    for (int four = spikes.first_four; four < spikes.last_four; four++) {
        Lanes sums[4][SIZE] = {{{0.0}}};
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
                for (int w = 0; w < SIZE; w++) sums[s][w] += held[w];
            }
        }
        for (int s = 0; s < 4 && 4 * four + s < end; s++)
            std::copy_n(sums[s], SIZE, arrived.lanes(4 * four + s - begin) + at);
    }
}

// Groups of four steps that one pass over the weights handles: those of a presentation, up to 4.
constexpr int N_LEARNED_FOURS = (N_STEPS + 2) / 4;  // spikes in the last step have no effect
constexpr int FOURS_AT_ONCE = N_LEARNED_FOURS < 1 ? 1 : N_LEARNED_FOURS < 4 ? N_LEARNED_FOURS : 4;
// With more than two, it is faster to read each row once, and to add the sums for its patterns.
constexpr bool SCATTER_BY_INPUT = FOURS_AT_ONCE > 2;

template <int SIZE, int WIDTH>
#if defined(__GNUC__) && !defined(__clang__)
__attribute__((optimize("no-associative-math")))  // adds in the order of the steps, as scatter_piece does
#endif
void scatter_by_input(const Spikes& spikes, const Rows<WIDTH>& change, int at, Rows<WIDTH>& weights)
{
    typedef typename Rows<WIDTH>::Lanes Lanes;
    static const std::vector<uint8_t> silent(N_INPUTS);
    for (int four = spikes.first_four; four < spikes.last_four; four += FOURS_AT_ONCE) {
        Lanes sums[FOURS_AT_ONCE][16][SIZE];
        const uint8_t* patterns[FOURS_AT_ONCE];
        for (int f = 0; f < FOURS_AT_ONCE; f++) {
            const bool is_drawn = four + f < spikes.last_four;
            patterns[f] = is_drawn ? spikes.pattern(four + f) : silent.data();
            std::fill_n(sums[f][0], SIZE, Lanes{0.0});
            for (int s = 0; s < 4; s++) {
                const int step = 4 * (four + f) + s;
                if (!is_drawn || step >= N_STEPS - 1) break;  // no pattern has later spikes
                const Lanes* now = change.lanes(step) + at;
                for (int w = 0; w < SIZE; w++)
                    for (int pattern = 0; pattern < 1 << s; pattern++)
                        sums[f][pattern | 1 << s][w] = sums[f][pattern][w] + now[w];
            }
        }
        for (int a = 0; a < spikes.n_active; a++) {
            Lanes* row = weights.lanes(spikes.active[a]) + at;
            const Lanes* added[FOURS_AT_ONCE];
            for (int f = 0; f < FOURS_AT_ONCE; f++) added[f] = sums[f][patterns[f][a]];
            for (int w = 0; w < SIZE; w++) {
                Lanes sum = row[w];
                for (int f = 0; f < FOURS_AT_ONCE; f++) sum += added[f][w];
                row[w] = sum;
            }
        }
    }
}

template <int SIZE, int WIDTH>
void scatter_piece(const Spikes& spikes, const Rows<WIDTH>& change, int at, Rows<WIDTH>& weights)
{
    typedef typename Rows<WIDTH>::Lanes Lanes;
    if (SCATTER_BY_INPUT) return scatter_by_input<SIZE>(spikes, change, at, weights);
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

// Sets arrived[t - begin], for the steps t drawn, to the sum of weights[input] over inputs that spike in t.
template <int WIDTH>
void gather(const Spikes& spikes, const Rows<WIDTH>& weights, int begin, int end, Rows<WIDTH>& arrived)
{
    typedef Pieces<Rows<WIDTH>::STRIDE, MOST_GATHERED> P;
    for (int at = 0; at < P::LAST; at += P::SIZE)
        gather_piece<P::SIZE>(spikes, weights, at, begin, end, arrived);
    gather_piece<P::LAST_SIZE>(spikes, weights, P::LAST, begin, end, arrived);
}

// weights[input] += change[t], for each spike of an input in step t.
template <int WIDTH>
void scatter(const Spikes& spikes, const Rows<WIDTH>& change, Rows<WIDTH>& weights)
{
    typedef Pieces<Rows<WIDTH>::STRIDE, SCATTER_BY_INPUT ? MOST_SUMMED : MOST_HELD> P;
    for (int at = 0; at < P::LAST; at += P::SIZE) scatter_piece<P::SIZE>(spikes, change, at, weights);
    scatter_piece<P::LAST_SIZE>(spikes, change, P::LAST, weights);
}

}  // namespace glmbrian

#endif  // GLMBRIAN_ROWS_HPP
