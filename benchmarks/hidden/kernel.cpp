// First-to-spike training of one hidden layer with exponential kernels and straight-through
// credit, and nothing else: the limit that benchmarks/hidden_speed.py compares with.  It is
// compiled with the sizes below as constants.
//
// Exponential kernels need one multiplication per neuron and step: what has arrived decays.
// Rows of weights are [basis][neuron], so that all loops over neurons are over whole vectors.
// Spikes of inputs go through patterns of four steps, as in speed/peers/hand_tuned.cpp.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace {

constexpr int N_X = N_INPUTS, M = N_HIDDEN, N_Y = N_CLASSES, T = N_STEPS, K = N_BASIS;
constexpr int N_DRAWN = T - 1;  // spikes of the last step have no effect
constexpr int N_GROUPS = (N_DRAWN + 3) / 4;
constexpr int N_PATTERNS = 16;

typedef double Line __attribute__((vector_size(64)));
constexpr int lines(int n) { return (n + 7) / 8; }
constexpr int HIDDEN = lines(M), OUT = lines(N_Y);  // Lines per neuron population
constexpr int ROW = K * HIDDEN, OUT_ROW = K * OUT;
// Blocks of a row that stay in registers
constexpr int N_BLOCKS = (ROW + 13) / 14;
constexpr int BLOCK = (ROW + N_BLOCKS - 1) / N_BLOCKS;
constexpr int PADDED = N_BLOCKS * BLOCK;

uint64_t split_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}
constexpr uint64_t STEP = UINT64_C(0x9E3779B97F4A7C15);

struct Learner {
    std::vector<Line> into, out;  // weights: [input][basis][hidden], [hidden][basis][output]
    Line hidden_bias[HIDDEN], bias[OUT];
    double first[K], decay[K];  // of each kernel
    uint64_t state;

    uint8_t pattern[N_GROUPS][N_X];
    int count[N_GROUPS][N_PATTERNS];
    int32_t sorted[N_GROUPS][N_PATTERNS][N_X];
    Line channels[4 * N_GROUPS][PADDED];  // what arrives; later the gradient with respect to it
    Line errors[N_GROUPS][N_PATTERNS][BLOCK];
    Line slope[T][HIDDEN], error[T][HIDDEN];  // g'(v), and the errors of hidden potentials
    int32_t spikes[T][M];
    int n_spikes[T];
    Line out_channels[T][OUT_ROW];
    double u[T][OUT * 8], out_error[T][OUT * 8];

    Learner() : into((size_t)N_X * PADDED), out((size_t)M * OUT_ROW) {}

    void draw(int n, const uint16_t* level)
    {
        for (int g = 0; g < N_GROUPS; g++) {
            const uint64_t from = state, wanted = (1 << std::min(4, N_DRAWN - 4 * g)) - 1;
            for (int a = 0; a < n; a++) {
                const uint64_t bits = split_mix(from + a * STEP), p = level[a];
                const uint64_t drawn = (uint64_t)((bits & 0xFFFF) < p)
                    | (uint64_t)((bits >> 16 & 0xFFFF) < p) << 1
                    | (uint64_t)((bits >> 32 & 0xFFFF) < p) << 2 | (uint64_t)((bits >> 48) < p) << 3;
                pattern[g][a] = drawn & wanted;
            }
            state += n * STEP;
        }
    }

    double learn(int n_active, const int32_t* active, int label, double rate)
    {
        for (int g = 0; g < N_GROUPS; g++) {
            std::fill_n(count[g], N_PATTERNS, 0);
            for (int a = 0; a < n_active; a++)
                sorted[g][pattern[g][a]][count[g][pattern[g][a]]++] = active[a];
        }
        for (int b = 0; b < N_BLOCKS; b++) arrive(b * BLOCK);
        simulate();
        const double log_likelihood = differentiate(label);
        go_back(rate);
        for (int b = 0; b < N_BLOCKS; b++) update(n_active, active, b * BLOCK);
        return log_likelihood;
    }

    void arrive(int at)
    {
        for (int s = 0; s < 4 * N_GROUPS; s++) std::fill_n(channels[s] + at, BLOCK, Line{});
        for (int g = 0; g < N_GROUPS; g++)
            for (int p = 1; p < N_PATTERNS; p++) {
                Line sum[BLOCK] = {};
                for (int n = 0; n < count[g][p]; n++) {
                    const Line* from = &into[(size_t)sorted[g][p][n] * PADDED + at];
#pragma GCC unroll 16
                    for (int c = 0; c < BLOCK; c++) sum[c] += from[c];
                }
                for (int s = 0; s < 4; s++)
                    if (p >> s & 1)
#pragma GCC unroll 16
                        for (int c = 0; c < BLOCK; c++) channels[4 * g + s][at + c] += sum[c];
            }
    }

    void simulate()
    {
        Line trace[K][HIDDEN] = {}, out_trace[K][OUT] = {};
        for (int t = 0; t < T; t++) {
            Line v[HIDDEN], now[OUT];
            std::copy_n(hidden_bias, HIDDEN, v);
            std::copy_n(bias, OUT, now);
            for (int k = 0; k < K; k++) {
                for (int c = 0; c < HIDDEN; c++) v[c] += trace[k][c];
                for (int c = 0; c < OUT; c++) now[c] += out_trace[k][c];
            }
            std::copy_n((double*)now, OUT * 8, u[t]);
            spike(t, (double*)v);
            for (int c = 0; c < OUT_ROW; c++) out_channels[t][c] = Line{};
            for (int s = 0; s < n_spikes[t]; s++)
                for (int c = 0; c < OUT_ROW; c++)
                    out_channels[t][c] += out[(size_t)spikes[t][s] * OUT_ROW + c];
            if (t == T - 1) break;
            for (int k = 0; k < K; k++) {
                for (int c = 0; c < HIDDEN; c++)
                    trace[k][c] = trace[k][c] * decay[k] + channels[t][k * HIDDEN + c] * first[k];
                for (int c = 0; c < OUT; c++)
                    out_trace[k][c] = out_trace[k][c] * decay[k] + out_channels[t][k * OUT + c] * first[k];
            }
        }
    }

    void spike(int t, const double* v)
    {
        double p[HIDDEN * 8];
        uint8_t drawn[HIDDEN * 8];
        double* own = (double*)slope[t];
        for (int m = 0; m < HIDDEN * 8; m++) p[m] = 1 / (1 + std::exp(-v[m]));
        for (int m = 0; m < HIDDEN * 8; m++) {
            own[m] = p[m] * (1 - p[m]);
            drawn[m] = (double)(split_mix(state + m * STEP) >> 11) * 0x1p-53 < p[m];
        }
        state += M * STEP;
        n_spikes[t] = 0;
        for (int m = 0; m < M; m++) {
            spikes[t][n_spikes[t]] = m;
            n_spikes[t] += drawn[m];
        }
    }

    // In probabilities, as in speed/peers/hand_tuned.cpp.
    double differentiate(int label)
    {
        double spike[T][N_Y], silence[T][N_Y], stop[T], go_on[T], win = 0, reached = 1;
        for (int t = 0; t < T; t++)
            for (int i = 0; i < N_Y; i++) {
                const double odds = std::exp(-u[t][i]);
                spike[t][i] = 1 / (1 + odds);
                silence[t][i] = odds / (1 + odds);
            }
        for (int t = T - 1; t >= 0; t--) {
            const double wait = silence[t][label] * win, here = spike[t][label] + wait;
            go_on[t] = wait / here;
            stop[t] = spike[t][label] * silence[t][label] * (1 - win) / here;
            win = here;
            for (int i = 0; i < N_Y; i++) win *= i == label ? 1 : silence[t][i];
        }
        for (int t = 0; t < T; t++) {
            std::fill_n(out_error[t], OUT * 8, 0.0);
            for (int i = 0; i < N_Y; i++) out_error[t][i] = -reached * spike[t][i];
            out_error[t][label] = reached * stop[t];
            reached *= go_on[t];
        }
        return std::log(win);
    }

    void go_back(double rate)
    {
        Line later_out[K][OUT] = {}, later[K][HIDDEN] = {};
        Line change[T][OUT_ROW];
        for (int t = T - 1; t >= 0; t--) {
            // `later_out` is the gradient in what arrives at the outputs in step t
            for (int k = 0; k < K; k++)
                for (int c = 0; c < OUT; c++) change[t][k * OUT + c] = later_out[k][c];
            double in_spike[HIDDEN * 8] = {};
            if (t < T - 1)
                for (int m = 0; m < M; m++) {
                    Line sum = {};
                    for (int c = 0; c < OUT_ROW; c++) sum += out[(size_t)m * OUT_ROW + c] * change[t][c];
                    for (int lane = 0; lane < 8; lane++) in_spike[m] += sum[lane];
                }
            for (int c = 0; c < HIDDEN; c++) error[t][c] = slope[t][c] * ((Line*)in_spike)[c];
            if (t < N_DRAWN)
                for (int k = 0; k < K; k++)
                    for (int c = 0; c < HIDDEN; c++) channels[t][k * HIDDEN + c] = later[k][c] * rate;
            for (int k = 0; k < K; k++) {
                for (int c = 0; c < OUT; c++)
                    later_out[k][c] = later_out[k][c] * decay[k] + ((Line*)out_error[t])[c] * first[k];
                for (int c = 0; c < HIDDEN; c++)
                    later[k][c] = later[k][c] * decay[k] + error[t][c] * first[k];
            }
            for (int c = 0; c < OUT; c++) bias[c] += rate * ((Line*)out_error[t])[c];
            for (int c = 0; c < HIDDEN; c++) hidden_bias[c] += rate * error[t][c];
        }
        for (int t = 0; t < T - 1; t++)
            for (int s = 0; s < n_spikes[t]; s++)
                for (int c = 0; c < OUT_ROW; c++)
                    out[(size_t)spikes[t][s] * OUT_ROW + c] += rate * change[t][c];
    }

    void update(int n_active, const int32_t* active, int at)
    {
        for (int g = 0; g < N_GROUPS; g++) {
            std::fill_n(errors[g][0], BLOCK, Line{});
            for (int s = 0; s < 4; s++)
                for (int p = 0; p < 1 << s; p++)
                    for (int c = 0; c < BLOCK; c++)
                        errors[g][p | 1 << s][c] = errors[g][p][c] + channels[4 * g + s][at + c];
        }
        for (int a = 0; a < n_active; a++) {
            Line* to = &into[(size_t)active[a] * PADDED + at];
            const Line* from[N_GROUPS];
            for (int g = 0; g < N_GROUPS; g++) from[g] = errors[g][pattern[g][a]];
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

// Trains from the given weights [source][neuron][basis]; returns the mean log-likelihood of the
// last pass.  Image n lights the inputs active[begins[n]] to active[begins[n + 1] - 1], which spike
// with probability level / 65536.
double train(const double* first, const double* decay, const double* into, const double* out,
             double hidden_bias, double bias, double rate, int64_t n_images, const int64_t* begins,
             const int32_t* active, const uint16_t* level, const int32_t* labels,
             int64_t n_presentations, uint64_t seed)
{
    Learner* learner = new Learner;
    std::copy_n(first, K, learner->first);
    std::copy_n(decay, K, learner->decay);
    for (int j = 0; j < N_X; j++)
        for (int m = 0; m < M; m++)
            for (int k = 0; k < K; k++)
                ((double*)&learner->into[(size_t)j * PADDED])[k * HIDDEN * 8 + m] = into[(j * M + m) * K + k];
    for (int m = 0; m < M; m++)
        for (int i = 0; i < N_Y; i++)
            for (int k = 0; k < K; k++)
                ((double*)&learner->out[(size_t)m * OUT_ROW])[k * OUT * 8 + i] = out[(m * N_Y + i) * K + k];
    std::fill_n((double*)learner->hidden_bias, HIDDEN * 8, hidden_bias);
    std::fill_n((double*)learner->bias, OUT * 8, bias);
    for (auto& step : learner->channels) std::fill_n(step, PADDED, Line{});
    learner->state = split_mix(seed);
    std::vector<int64_t> order(n_images);
    std::iota(order.begin(), order.end(), 0);
    double sum = 0;
    for (int64_t n = 0; n < n_presentations; n++) {
        if (n % n_images == 0) {
            sum = 0;
            for (int64_t left = n_images; left > 1; left--) {
                learner->state += STEP;
                std::swap(order[left - 1], order[split_mix(learner->state) % left]);
            }
        }
        const int64_t image = order[n % n_images], begin = begins[image];
        const int n_active = begins[image + 1] - begin;
        learner->draw(n_active, level + begin);
        sum += learner->learn(n_active, active + begin, labels[image], rate);
    }
    delete learner;
    return sum / ((n_presentations - 1) % n_images + 1);
}

}
