// First-to-spike training and nothing else, as fast as it would go: see hand_tuned.py,
// which compiles this file with the sizes below as constants.
//
// Four steps share one 64-bit draw, and the spikes of an input in these four steps are a
// number from 0 to 15, its *pattern*.  All that a presentation does with the weights goes
// through patterns, so that it has no branch on a spike:
//
// - forwards, inputs are sorted by pattern, and the rows of weights of each pattern are
//   summed in registers; these sums make up what arrives in each of the four steps;
// - backwards, the errors of the four steps make up a row for each of the 16 patterns,
//   and an input adds the row of its pattern to its own.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace {

constexpr int N_X = N_INPUTS, N_Y = N_CLASSES, T = N_STEPS, K = N_BASIS;
constexpr int N_LAGS = T - 1;  // more lags than that reach beyond the presentation
constexpr int N_DRAWN = T - 1;  // spikes of the last step move nothing
constexpr int N_GROUPS = (N_DRAWN + 3) / 4;
constexpr int N_PATTERNS = 16;

// Rows are made of cache lines, and cut into blocks of so few that a sum stays in registers.
typedef Real Line __attribute__((vector_size(64)));
constexpr int PER_LINE = 64 / sizeof(Real);
constexpr int N_LINES = (N_Y * K + PER_LINE - 1) / PER_LINE;
constexpr int N_BLOCKS = (N_LINES + 15) / 16;
constexpr int BLOCK = (N_LINES + N_BLOCKS - 1) / N_BLOCKS;
constexpr int ROW = N_BLOCKS * BLOCK;

// Steps in eights.
typedef double Eight __attribute__((vector_size(64)));
constexpr int N_EIGHTS = (T + 7) / 8;

uint64_t split_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

class Random {
public:
    explicit Random(uint64_t seed) : state_(split_mix(seed)) {}

    // Draws patterns of `n` inputs that spike with probabilities level / 65536.
    void patterns(int n, const uint16_t* level, int n_steps, uint8_t* pattern)
    {
        const uint64_t state = state_, wanted = (1 << n_steps) - 1;
        for (int a = 0; a < n; a++) {
            const uint64_t bits = split_mix(state + a * STEP), p = level[a];
            const uint64_t drawn = (uint64_t)((bits & 0xFFFF) < p)
                | (uint64_t)((bits >> 16 & 0xFFFF) < p) << 1
                | (uint64_t)((bits >> 32 & 0xFFFF) < p) << 2
                | (uint64_t)((bits >> 48) < p) << 3;
            pattern[a] = drawn & wanted;
        }
        state_ += n * STEP;
    }

    void shuffle(std::vector<int64_t>& order)
    {
        for (size_t n = order.size(); n > 1; n--) {
            state_ += STEP;
            std::swap(order[n - 1], order[split_mix(state_) % n]);
        }
    }

private:
    static constexpr uint64_t STEP = UINT64_C(0x9E3779B97F4A7C15);
    uint64_t state_;
};

class Learner {
public:
    uint8_t pattern[N_GROUPS][N_X];
    int64_t n_seen[N_GROUPS][N_PATTERNS] = {};  // how often each pattern came

    Learner(const double* basis, const double* weights, const double* bias)
        : weights_((size_t)N_X * ROW)
    {
        std::copy_n(basis, N_LAGS * K, &basis_[0][0]);
        for (int s = 0; s < N_DRAWN; s++)
            for (int k = 0; k < K; k++)
                for (int t = 0; t < T; t++)
                    filter_[s][k][t / 8][t % 8] = t > s ? basis_[t - s - 1][k] : 0;
        for (int i = 0; i < N_X; i++) std::copy_n(weights + i * N_Y * K, N_Y * K, weight(i));
        std::copy_n(bias, N_Y, bias_);
    }

    void store(double* weights, double* bias)
    {
        for (int i = 0; i < N_X; i++) std::copy_n(weight(i), N_Y * K, weights + i * N_Y * K);
        std::copy_n(bias_, N_Y, bias);
    }

    // Learns from the patterns of the inputs `active`; returns the log-likelihood.
    double learn(int n_active, const int32_t* active, int label, double learning_rate)
    {
        sort(n_active, active);
        for (int b = 0; b < N_BLOCKS; b++) arrive(b * BLOCK);
        filter();
        const double log_likelihood = differentiate(label);
        correlate(learning_rate);
        for (int b = 0; b < N_BLOCKS; b++) update(n_active, active, b * BLOCK);
        for (int t = 0; t < T; t++)
            for (int i = 0; i < N_Y; i++) bias_[i] += learning_rate * error_[t][i];
        return log_likelihood;
    }

private:
    std::vector<Line> weights_;  // [input][output][basis]
    double bias_[N_Y];
    double basis_[N_LAGS][K];
    Eight filter_[N_DRAWN][K][N_EIGHTS] = {};  // the basis, for vectors over the steps t > s
    int count_[N_GROUPS][N_PATTERNS];
    int32_t sorted_[N_GROUPS][N_PATTERNS][N_X];
    // what arrives in a step; later the gradient with respect to that
    Line channels_[4 * N_GROUPS][ROW];
    Line errors_[N_GROUPS][N_PATTERNS][BLOCK];
    alignas(64) double u_[T][N_Y], error_[T][N_Y];

    Line* row(int i) { return &weights_[(size_t)i * ROW]; }
    Real* weight(int i) { return reinterpret_cast<Real*>(row(i)); }
    Real* channel(int s) { return reinterpret_cast<Real*>(channels_[s]); }

    void sort(int n_active, const int32_t* active)
    {
        for (int g = 0; g < N_GROUPS; g++) {
            std::fill_n(count_[g], N_PATTERNS, 0);
            for (int a = 0; a < n_active; a++) {
                const int p = pattern[g][a];
                sorted_[g][p][count_[g][p]++] = active[a];
            }
            for (int p = 0; p < N_PATTERNS; p++) n_seen[g][p] += count_[g][p];
        }
    }

    void arrive(int first)
    {
        for (int s = 0; s < 4 * N_GROUPS; s++)
            std::fill_n(channels_[s] + first, BLOCK, Line{});
        for (int g = 0; g < N_GROUPS; g++)
            for (int p = 1; p < N_PATTERNS; p++) {
                Line sum[BLOCK] = {};
                for (int n = 0; n < count_[g][p]; n++) {
                    const Line* from = row(sorted_[g][p][n]) + first;
#pragma GCC unroll 16
                    for (int c = 0; c < BLOCK; c++) sum[c] += from[c];
                }
                for (int s = 0; s < 4; s++)
                    if (p >> s & 1)
#pragma GCC unroll 16
                        for (int c = 0; c < BLOCK; c++) channels_[4 * g + s][first + c] += sum[c];
            }
    }

    void filter()
    {
        double u[N_Y][N_EIGHTS * 8];
        for (int i = 0; i < N_Y; i++) std::fill_n(u[i], N_EIGHTS * 8, bias_[i]);
        for (int s = 0; s < N_DRAWN; s++)
            for (int i = 0; i < N_Y; i++) {
                Eight sum[N_EIGHTS] = {};
                for (int k = 0; k < K; k++)
#pragma GCC unroll 4
                    for (int e = 0; e < N_EIGHTS; e++)
                        sum[e] += (double)channel(s)[i * K + k] * filter_[s][k][e];
                for (int t = 0; t < T; t++) u[i][t] += sum[t / 8][t % 8];
            }
        for (int t = 0; t < T; t++)
            for (int i = 0; i < N_Y; i++) u_[t][i] = u[i][t];
    }

    // In probabilities, not in logarithms as glmbrian.learning: that is good for potentials
    // which training gets to, and costs one exponential each.
    double differentiate(int label)
    {
        double spike[T][N_Y], silence[T][N_Y];
        for (int n = 0; n < T * N_Y; n++) {
            const double odds = std::exp(-(&u_[0][0])[n]);
            (&spike[0][0])[n] = 1 / (1 + odds);
            (&silence[0][0])[n] = odds / (1 + odds);
        }
        // `win`: that the right neuron is first, if nobody spiked before step t
        double stop[T], go_on[T], win = 0;
        for (int t = T - 1; t >= 0; t--) {
            const double wait = silence[t][label] * win, here = spike[t][label] + wait;
            go_on[t] = wait / here;
            stop[t] = spike[t][label] * silence[t][label] * (1 - win) / here;
            win = here;
            for (int i = 0; i < N_Y; i++) win *= i == label ? 1 : silence[t][i];
        }
        double reached = 1;
        for (int t = 0; t < T; t++) {
            for (int i = 0; i < N_Y; i++) error_[t][i] = -reached * spike[t][i];
            error_[t][label] = reached * stop[t];
            reached *= go_on[t];
        }
        return std::log(win);
    }

    void correlate(double learning_rate)
    {
        for (int s = 0; s < N_DRAWN; s++)
            for (int i = 0; i < N_Y; i++) {
                double sum[K] = {0};
                for (int t = s + 1; t < T; t++)
                    for (int k = 0; k < K; k++) sum[k] += error_[t][i] * basis_[t - s - 1][k];
                for (int k = 0; k < K; k++) channel(s)[i * K + k] = learning_rate * sum[k];
            }
    }

    void update(int n_active, const int32_t* active, int first)
    {
        for (int g = 0; g < N_GROUPS; g++) {
            std::fill_n(errors_[g][0], BLOCK, Line{});
            for (int s = 0; s < 4; s++)
                for (int p = 0; p < 1 << s; p++)
                    for (int c = 0; c < BLOCK; c++)
                        errors_[g][p | 1 << s][c]
                            = errors_[g][p][c] + channels_[4 * g + s][first + c];
        }
        for (int a = 0; a < n_active; a++) {
            Line* to = row(active[a]) + first;
            const Line* from[N_GROUPS];
            for (int g = 0; g < N_GROUPS; g++) from[g] = errors_[g][pattern[g][a]];
#pragma GCC unroll 16
            for (int c = 0; c < BLOCK; c++) {
                Line sum = to[c];
                for (int g = 0; g < N_GROUPS; g++) sum += from[g][c];
                to[c] = sum;
            }
        }
    }
};

}  // namespace

extern "C" {

// Trains `weights` and `bias` in place.  Image n lights the inputs active[first[n]] to
// active[first[n + 1] - 1], which spike with probability level / 65536.  How often each
// pattern came is written to `n_seen`.
void train(
    const double* basis, double* weights, double* bias, double learning_rate, int64_t n_images,
    const int64_t* first, const int32_t* active, const uint16_t* level, const int32_t* labels,
    int64_t n_presentations, uint64_t seed, int64_t* n_seen)
{
    Learner learner(basis, weights, bias);
    Random random(seed);
    std::vector<int64_t> order(n_images);
    std::iota(order.begin(), order.end(), 0);
    for (int64_t n = 0; n < n_presentations; n++) {
        if (n % n_images == 0) random.shuffle(order);
        const int64_t image = order[n % n_images], begin = first[image];
        const int n_active = first[image + 1] - begin;
        for (int g = 0; g < N_GROUPS; g++) {
            const int n_steps = std::min(4, N_DRAWN - 4 * g);
            random.patterns(n_active, level + begin, n_steps, learner.pattern[g]);
        }
        learner.learn(n_active, active + begin, labels[image], learning_rate);
    }
    learner.store(weights, bias);
    std::copy_n(&learner.n_seen[0][0], N_GROUPS * N_PATTERNS, n_seen);
}

// One update at a learning rate of 1 on given spikes (T, N_X); returns the log-likelihood.
double learn_once(
    const double* basis, double* weights, double* bias, const uint8_t* spikes, int label)
{
    Learner learner(basis, weights, bias);
    std::vector<int32_t> active(N_X);
    std::iota(active.begin(), active.end(), 0);
    for (int g = 0; g < N_GROUPS; g++)
        for (int i = 0; i < N_X; i++) {
            learner.pattern[g][i] = 0;
            for (int t = 4 * g; t < std::min(4 * g + 4, N_DRAWN); t++)
                learner.pattern[g][i] |= spikes[t * N_X + i] << (t - 4 * g);
        }
    const double log_likelihood = learner.learn(N_X, active.data(), label, 1.0);
    learner.store(weights, bias);
    return log_likelihood;
}

}
