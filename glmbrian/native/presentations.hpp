// Presentations in generated C++ code: what happens between the time steps of the
// Brian 2 model when a classifier is trained or tested as a compiled program.
//
// Brian's generated code filters, thresholds and resets the neurons.  The operations
// here are called from it, at four points of each time step:
//
//   begin_step   (slot start)       begins the next presentation if the last is over
//   emit         (slot thresholds)  makes the inputs spike
//   propagate    (slot synapses)    adds the weights of spiking inputs to the neurons
//   end_step     (slot end)         records, decides, and applies the gradient update
//
// glmbrian/devices/runtime.py is the plain twin of this file: it does the same with
// NumPy, GLMSynapses and RateEncoder, and the tests hold the two to each other.
//
// The names from `glmbrian_model` (sizes, bases, activation and Brian's arrays) are
// written by glmbrian/devices/cpp_standalone.py.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include <sys/resource.h>

#include "glmbrian_model.hpp"

namespace glmbrian {

using namespace glmbrian_model;

constexpr int ROW = N_OUTPUTS * N_BASIS;          // weights of one input
constexpr int FEEDBACK_ROW = N_OUTPUTS * N_FEEDBACK;  // may be 0, so arrays get one more

// ---------------------------------------------------------------- random numbers
// The hash of glmbrian/randomness.py.

inline uint64_t mix64(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

inline uint64_t hash(uint64_t key, uint64_t counter)
{
    return mix64(key + UINT64_C(0x9E3779B97F4A7C15) * (counter + 1));
}

// ---------------------------------------------------------------- the job

[[noreturn]] inline void fail(const std::string& message)
{
    std::cerr << "glmbrian: " << message << std::endl;
    std::exit(3);
}

template <class T>
std::vector<T> read_array(const std::string& path, size_t size)
{
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file) fail("cannot read " + path);
    if ((size_t)file.tellg() != size * sizeof(T)) fail(path + " has the wrong size");
    std::vector<T> values(size);
    file.seekg(0);
    file.read(reinterpret_cast<char*>(values.data()), size * sizeof(T));
    return values;
}

template <class T>
void write_array(std::ofstream& file, const T* values, size_t size)
{
    file.write(reinterpret_cast<const char*>(values), size * sizeof(T));
}

inline void close_checked(std::ofstream& file, const char* path)
{
    file.close();
    if (!file) fail(std::string("cannot write ") + path);
}

// Peak resident memory in bytes, as far as the operating system tells.  (Linux's
// getrusage would count what the process that started the program had.)
inline long long peak_memory()
{
    std::ifstream status("/proc/self/status");
    std::string word;
    while (status >> word)
        if (word == "VmHWM:") {
            long long kilobytes = 0;
            status >> kilobytes;
            return kilobytes * 1024;
        }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

enum class Data { bytes, levels, trains };

// What to do with the model, read when the program starts, so that one compiled
// program serves any data, seed, learning rate and number of epochs.
struct Job {
    bool train, rate, early_stop;
    Data data;
    int64_t n_items, n_epochs, batch_size, first_presentation;
    double learning_rate;
    uint64_t input_key, output_key, order_key;

    explicit Job(const std::string& path)
    {
        std::map<std::string, std::string> setting;
        std::ifstream file(path);
        if (!file) fail("cannot read " + path);
        std::string name, value;
        while (file >> name >> value) setting[name] = value;
        auto text = [&](const char* key) {
            if (!setting.count(key)) fail(path + " lacks the setting " + key);
            return setting[key];
        };
        auto number = [&](const char* key) { return (int64_t)std::strtoll(text(key).c_str(), nullptr, 10); };
        auto key64 = [&](const char* key) { return (uint64_t)std::strtoull(text(key).c_str(), nullptr, 10); };
        train = text("mode") == "train";
        rate = text("decoding") == "rate";
        early_stop = !train && !rate;
        const std::string kind = text("data");
        data = kind == "bytes" ? Data::bytes : kind == "levels" ? Data::levels : Data::trains;
        n_items = number("n_items");
        n_epochs = number("n_epochs");
        batch_size = number("batch_size");
        first_presentation = number("first_presentation");
        learning_rate = std::strtod(text("learning_rate").c_str(), nullptr);
        input_key = key64("input_key");
        output_key = key64("output_key");
        order_key = key64("order_key");
    }
};

// ---------------------------------------------------------------- the inputs

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

// ---------------------------------------------------------------- the gradients
// glmbrian/learning.py, on the potentials of one presentation.

typedef double Trace[N_STEPS][N_OUTPUTS];

// log(g + (1 - g) w), given both logarithms and loss = 1 - w.
inline double log_mixture(double log_g, double log_rest, double log_w, double loss)
{
    const double missing = std::exp(log_rest) * loss;
    if (missing < 0.5) return std::log1p(-missing);
    const double b = log_rest + log_w, largest = std::max(log_g, b);
    return largest + std::log(std::exp(log_g - largest) + std::exp(b - largest));
}

// Eqs. first_spk_method_2 to first_spk_method_q; returns the log-likelihood.  Goes
// backwards over the steps, so that nothing cancels: see glmbrian/learning.py.
inline double first_to_spike_gradient(const Trace& u, int label, Trace& grad)
{
    double stop[N_STEPS], go_on[N_STEPS], loss[N_STEPS];
    // of the right neuron being first if nobody spiked before step t: log w_t, 1 - w_t
    double log_win = -INFINITY, loss_now = 1.0;
    for (int t = N_STEPS - 1; t >= 0; t--) {
        const double log_g = Activation::log_spike(u[t][label]);
        const double log_rest = Activation::log_silence(u[t][label]);
        const double log_s = log_mixture(log_g, log_rest, log_win, loss_now);
        loss[t] = loss_now;
        stop[t] = log_g - log_s;
        go_on[t] = log_rest + log_win - log_s;
        log_win = log_s;
        for (int i = 0; i < N_OUTPUTS; i++)
            if (i != label) log_win += Activation::log_silence(u[t][i]);
        loss_now = -std::expm1(log_win);
    }
    double log_h = 0.0;
    for (int t = 0; t < N_STEPS; t++) {
        const double h = std::exp(log_h);
        for (int i = 0; i < N_OUTPUTS; i++)
            grad[t][i] = i == label
                ? h * std::exp(stop[t]) * loss[t] * Activation::log_spike_slope(u[t][i])
                : h * Activation::log_silence_slope(u[t][i]);
        log_h += go_on[t];
    }
    return log_win;
}

// Eqs. LL_conv and err to rho_def; `desired(t, i)` is the desired train.
template <class Desired>
double rate_gradient(const Trace& u, Desired desired, Trace& grad)
{
    double log_likelihood = 0.0;
    for (int t = 0; t < N_STEPS; t++)
        for (int i = 0; i < N_OUTPUTS; i++) {
            const bool spike = desired(t, i);
            log_likelihood += spike ? Activation::log_spike(u[t][i]) : Activation::log_silence(u[t][i]);
            grad[t][i] = spike ? Activation::log_spike_slope(u[t][i]) : Activation::log_silence_slope(u[t][i]);
        }
    return log_likelihood;
}

// The gradient with respect to the channels of step t: the error of later steps,
// weighted by the basis.
template <int K, int W>
void correlate(const Trace& grad, const double (&basis)[W][K], int t, double scale, double* row)
{
    std::fill_n(row, N_OUTPUTS * K, 0.0);
    for (int lag = 1; lag <= W && t + lag < N_STEPS; lag++)
        for (int i = 0; i < N_OUTPUTS; i++) {
            const double error = scale * grad[t + lag][i];
            for (int k = 0; k < K; k++) row[i * K + k] += error * basis[lag - 1][k];
        }
}

// ---------------------------------------------------------------- presentations

class Presentations {
public:
    Presentations()
        : job_("job/settings.txt"), encoder_(job_), weights_((size_t)N_INPUTS * ROW),
          order_(job_.n_items), began_(std::chrono::steady_clock::now())
    {
        labels_ = job_.train ? read_array<int32_t>("job/labels.bin", job_.n_items) : std::vector<int32_t>(job_.n_items);
        desired_ = read_array<uint8_t>("job/desired.bin", N_STEPS);
        const auto all = read_array<double>("job/parameters.bin", weights_.size() + FEEDBACK_ROW + N_OUTPUTS);
        std::copy_n(all.begin(), weights_.size(), weights_.begin());
        const double* rest = all.data() + weights_.size();
        for (int i = 0; i < N_OUTPUTS; i++)
            for (int k = 0; k < N_FEEDBACK; k++) feedback_weight(k)[i] = *rest++;
        std::copy_n(rest, N_OUTPUTS, bias());
        if (job_.batch_size > 1) gradient_.resize(weights_.size());
        neuron_key_low()[0] = (int32_t)(uint32_t)job_.output_key;
        neuron_key_high()[0] = (int32_t)(uint32_t)(job_.output_key >> 32);
        if (!job_.train) outcome_.open("job/outcome.bin", std::ios::binary);
        begin_epoch();
    }

    void begin_step()
    {
        if (step_ == 0) begin_presentation();
        if (job_.train)
            for (int i = 0; i < N_OUTPUTS; i++)
                clamp()[i] = job_.rate && wanted(step_, i) ? 1 : -1;
    }

    void emit()
    {
        const Encoder::Step& now = encoder_.draw(step_);
        std::copy_n(now.index.data(), now.count, input_spikes());
        input_spikes()[N_INPUTS] = now.count;
    }

    void propagate()
    {
        double arrived[ROW] = {0.0};
        const int32_t* spikes = input_spikes();
        const int count = spikes[N_INPUTS];
        for (int s = 0; s < count; s++) {
            const double* row = &weights_[(size_t)spikes[s] * ROW];
            for (int r = 0; r < ROW; r++) arrived[r] += row[r];
        }
        for (int k = 0; k < N_BASIS; k++)
            for (int i = 0; i < N_OUTPUTS; i++) channel(k)[i] += arrived[i * N_BASIS + k];
        n_input_spikes_ += count;
    }

    void end_step()
    {
        std::copy_n(potential(), N_OUTPUTS, u_[step_]);
        const int32_t* spikes = output_spikes();
        const int count = spikes[N_OUTPUTS];
        for (int s = 0; s < count; s++) spike_count_[spikes[s]] += 1;
        step_++;
        n_steps_run_++;
        if (step_ == N_STEPS || (job_.early_stop && count > 0)) {
            if (job_.train) update(); else report();
            end_presentation();
        }
    }

private:
    Job job_;
    Encoder encoder_;
    std::vector<double> weights_, gradient_;      // [input][output][basis]
    double feedback_gradient_[FEEDBACK_ROW + 1], bias_gradient_[N_OUTPUTS];
    std::vector<int32_t> labels_;
    std::vector<uint8_t> desired_;
    std::vector<int64_t> order_;
    std::vector<double> history_;
    std::ofstream outcome_;
    Trace u_, grad_;
    int32_t spike_count_[N_OUTPUTS];
    int step_ = 0, in_batch_ = 0;
    int64_t position_ = 0, epoch_ = 0, n_steps_run_ = 0, n_input_spikes_ = 0;
    double epoch_log_likelihood_ = 0.0;
    std::chrono::steady_clock::time_point began_, reported_;

    int64_t item() const { return order_[position_]; }
    bool wanted(int t, int i) const { return i == labels_[item()] && desired_[t]; }

    void begin_epoch()
    {
        for (int64_t n = 0; n < job_.n_items; n++) order_[n] = n;
        if (!job_.train) return;
        // The order is that of one hash an item; see glmbrian.randomness.shuffled.
        const int64_t epochs_before = job_.first_presentation / job_.n_items;
        const uint64_t base = hash(job_.order_key, (uint64_t)(epochs_before + epoch_));
        std::vector<uint64_t> rank(job_.n_items);
        for (int64_t n = 0; n < job_.n_items; n++) rank[n] = hash(base, (uint64_t)n);
        std::sort(order_.begin(), order_.end(), [&](int64_t a, int64_t b) {
            return rank[a] != rank[b] ? rank[a] < rank[b] : a < b;
        });
    }

    void begin_presentation()
    {
        const int64_t presentation = job_.first_presentation + epoch_ * job_.n_items + position_;
        encoder_.begin(item(), presentation);
        neuron_presentation()[0] = (int32_t)presentation;
        neuron_first_step()[0] = (int32_t)timestep();
        clear_filters();
        std::fill_n(spike_count_, N_OUTPUTS, 0);
        n_input_spikes_ = 0;
    }

    void update()
    {
        const int label = labels_[item()];
        epoch_log_likelihood_ += job_.rate
            ? rate_gradient(u_, [this](int t, int i) { return wanted(t, i); }, grad_)
            : first_to_spike_gradient(u_, label, grad_);
        const bool in_place = job_.batch_size == 1;
        if (in_batch_++ == 0) {
            std::fill_n(bias_gradient_, N_OUTPUTS, 0.0);
            std::fill_n(feedback_gradient_, FEEDBACK_ROW, 0.0);
        }
        std::vector<double>& into = in_place ? weights_ : gradient_;
        double row[ROW], feedback_row[FEEDBACK_ROW + N_OUTPUTS];
        for (int t = 0; t < N_STEPS; t++) {
            for (int i = 0; i < N_OUTPUTS; i++) bias_gradient_[i] += grad_[t][i];
            if (t == N_STEPS - 1) break;          // spikes of the last step move nothing
            correlate(grad_, BASIS, t, in_place ? job_.learning_rate : 1.0, row);
            const Encoder::Step& spikes = encoder_.spikes[t];
            for (int s = 0; s < spikes.count; s++) {
                double* target = &into[(size_t)spikes.index[s] * ROW];
                for (int r = 0; r < ROW; r++) target[r] += row[r];
            }
            // Only the right neuron has spikes to feed back, and only in rate training.
            if (N_FEEDBACK > 0 && job_.rate && desired_[t]) {
                correlate(grad_, FEEDBACK_BASIS, t, 1.0, feedback_row);
                for (int k = 0; k < N_FEEDBACK; k++)
                    feedback_gradient_[label * N_FEEDBACK + k] += feedback_row[label * N_FEEDBACK + k];
            }
        }
        if (in_batch_ == job_.batch_size || position_ + 1 == job_.n_items) apply();
    }

    // The update of a batch is the learning rate times its mean gradient.
    void apply()
    {
        const double rate = job_.learning_rate / in_batch_;
        for (int i = 0; i < N_OUTPUTS; i++) bias()[i] += rate * bias_gradient_[i];
        for (int k = 0; k < N_FEEDBACK; k++)
            for (int i = 0; i < N_OUTPUTS; i++)
                feedback_weight(k)[i] += rate * feedback_gradient_[i * N_FEEDBACK + k];
        for (size_t w = 0; w < gradient_.size(); w++) {
            weights_[w] += rate * gradient_[w];
            gradient_[w] = 0.0;
        }
        in_batch_ = 0;
    }

    // One row of doubles a test presentation: see glmbrian.model.Outcome.
    void report()
    {
        double row[2 + 3 * N_OUTPUTS] = {(double)step_, (double)n_input_spikes_};
        for (int i = 0; i < N_OUTPUTS; i++) {
            row[2 + i] = spike_count_[i];
            for (int t = 0; t < step_; t++) row[2 + N_OUTPUTS + i] += u_[t][i];
            row[2 + 2 * N_OUTPUTS + i] = u_[step_ - 1][i];
        }
        write_array(outcome_, row, 2 + 3 * N_OUTPUTS);
    }

    void end_presentation()
    {
        step_ = 0;
        position_++;
        if (position_ % 16 == 0) show_progress(false);
        if (position_ < job_.n_items) return;
        history_.push_back(epoch_log_likelihood_ / job_.n_items);
        epoch_log_likelihood_ = 0.0;
        position_ = 0;
        if (++epoch_ < job_.n_epochs) { begin_epoch(); return; }
        show_progress(true);
        if (job_.train) save(); else close_checked(outcome_, "job/outcome.bin");
        save_run();
        stop_run();
    }

    void show_progress(bool last)
    {
        const auto now = std::chrono::steady_clock::now();
        if (!last && now - reported_ < std::chrono::milliseconds(100)) return;
        reported_ = now;
        std::printf("glmbrian progress %lld %lld\n", (long long)(epoch_ * job_.n_items + position_),
                    (long long)(job_.n_epochs * job_.n_items));
        std::fflush(stdout);
    }

    void save()
    {
        std::ofstream file("job/trained.bin", std::ios::binary);
        write_array(file, weights_.data(), weights_.size());
        for (int i = 0; i < N_OUTPUTS; i++)
            for (int k = 0; k < N_FEEDBACK; k++) write_array(file, feedback_weight(k) + i, 1);
        write_array(file, bias(), N_OUTPUTS);
        close_checked(file, "job/trained.bin");
        std::ofstream history("job/history.bin", std::ios::binary);
        write_array(history, history_.data(), history_.size());
        close_checked(history, "job/history.bin");
    }

    void save_run()
    {
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began_;
        std::ofstream file("job/run.txt");
        file << "steps " << n_steps_run_ << "\nseconds " << seconds.count() << "\npeak_memory "
             << peak_memory() << "\n";
        close_checked(file, "job/run.txt");
        std::printf("glmbrian: %lld presentations in %.2f s, results are in the folder job\n",
                    (long long)(job_.n_epochs * job_.n_items), seconds.count());
    }
};

inline Presentations& presentations()
{
    static Presentations the_presentations;
    return the_presentations;
}

}  // namespace glmbrian
