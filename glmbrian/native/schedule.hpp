// The order of presentations, what is recorded of each, and the results at the end.
// Shared by the devices that compile programs.
#ifndef GLMBRIAN_SCHEDULE_HPP
#define GLMBRIAN_SCHEDULE_HPP

#include "gradients.hpp"
#include "job.hpp"

namespace glmbrian {

// Potentials or errors of the outputs of one replica.
typedef double Trace[N_STEPS][N_CLASSES];

// Number of presentations between clock reads, each of which takes as long as some steps.
constexpr int64_t LOOK_EVERY = N_STEPS < 128 ? 128 / N_STEPS : 1;

class Schedule {
public:
    const Job job;

    // Earlier results go first: not even wrong settings may leave any that `load` would read.
    Schedule()
        : job((ResultFile::remove_all(), "job/settings.txt")), began_(std::chrono::steady_clock::now())
    {
        if (job.train) {
            labels_ = read_array<int32_t>("job/labels.bin", job.n_items);
            for (const int32_t label : labels_)
                if (label < 0 || label >= N_CLASSES)
                    fail("job/labels.bin must hold integers from 0 to " + std::to_string(N_CLASSES - 1)
                         + ", got " + std::to_string(label));
            if (job.n_rate_factors) {
                rate_factors_.open("job/rate_factors.bin", job.n_rate_factors,
                                   ": the schedule of the learning rate has a factor for each of the "
                                   "n_epochs * n_items presentations, so to change these, export again");
                for (int64_t n = 0; n < job.n_rate_factors; n++)
                    if (!std::isfinite(rate_factors_[n]) || rate_factors_[n] < 0.0)
                        fail("job/rate_factors.bin must hold finite numbers of at least 0, got "
                             + std::to_string(rate_factors_[n]));
            }
            if (job.weighted)
                sample_weights_ = read_numbers("job/sample_weights.bin", N_REPLICAS * job.n_items, false);
        } else {
            outcome_.open("job/outcome.bin", std::ios::binary);
        }
        order_.resize(job.n_items);
        begin_epoch();
    }

    int64_t item() const { return order_[position_]; }
    int64_t next_item() const { return order_[std::min(position_ + 1, job.n_items - 1)]; }
    int64_t presentation() const
    {
        return job.first_presentation + epoch_ * job.n_items + position_;
    }
    int label() const { return labels_[item()]; }
    bool is_last_of_epoch() const { return position_ + 1 == job.n_items; }
    bool desired(int step, int neuron) const
    {
        return is_desired<Objective>(step, neuron, label(), job.target_period, job.target_start);
    }
    bool is_over() const { return epoch_ == job.n_epochs && position_ == 0; }
    // Whether the parameters after this presentation, the last of its epoch, are averaged.
    bool is_averaged() const { return epoch_ >= job.n_epochs - job.n_averaged; }
    // Of the averaged epochs, the fraction that ends after this presentation.
    double share_of_mean() const
    {
        const int64_t n_left = job.n_epochs - epoch_;
        return n_left < job.n_averaged ? (double)n_left / (double)job.n_averaged : 1.0;
    }
    // Of this presentation: a schedule changes it.
    double learning_rate(int replica) const
    {
        const double rate = job.learning_rates[replica];
        return job.n_rate_factors ? rate * rate_factors_[epoch_ * job.n_items + position_] : rate;
    }
    double sample_weight(int replica) const
    {
        return sample_weights_.empty() ? 1.0 : sample_weights_[replica * job.n_items + item()];
    }

    // Sets `grad` to the gradient of this presentation in the potentials `u` of a replica,
    // whose output spikes are `outputs(t, i)`.  Its log-likelihood enters the means unless this is
    // only to find out what an attack changes.
    template <class Outputs>
    void learn(int replica, const Trace& u, Outputs outputs, Trace& grad, bool counts = true)
    {
        const double log_likelihood = Objective::template gradient<Activation>(u, outputs, label(), grad);
        if (!counts) return;
        if (N_HIDDEN) find_reward(log_likelihood, sample_weight(replica));
        log_likelihood_[replica] += log_likelihood * sample_weight(replica);
        total_weight_[replica] += sample_weight(replica);
    }

    // The log-likelihood of this presentation, less the mean of earlier ones: see
    // glmbrian.core.credit.Baseline.
    double reward() const { return reward_; }

    // Writes one row of doubles per test presentation: see glmbrian.core.outcome.Outcome.
    // `hidden_counts` holds the spikes of each hidden layer.
    void report(int n_steps, const int32_t* input_counts, const std::vector<double>& hidden_counts,
                const int32_t* counts, const Trace& u)
    {
        std::vector<double> row(2, n_steps);
        row[1] = std::accumulate(input_counts, input_counts + n_steps, 0.0);
        row.insert(row.end(), hidden_counts.begin(), hidden_counts.end());
        const size_t first = row.size();
        row.resize(first + 3 * N_CLASSES);
        for (int i = 0; i < N_CLASSES; i++) {
            row[first + i] = counts[i];
            for (int t = 0; t < n_steps; t++) row[first + N_CLASSES + i] += u[t][i];
            row[first + 2 * N_CLASSES + i] = u[n_steps - 1][i];
        }
        write_array(outcome_, row.data(), row.size());
    }

    // Advances to the next presentation; returns whether there is one.
    bool advance()
    {
        position_++;
        if (++n_done_ % LOOK_EVERY == 0) show_progress(false);
        if (position_ < job.n_items) return true;
        for (int r = 0; r < N_REPLICAS; r++) {
            history_.push_back(total_weight_[r] > 0 ? log_likelihood_[r] / total_weight_[r] : 0.0);
            log_likelihood_[r] = total_weight_[r] = 0.0;
        }
        position_ = 0;
        if (++epoch_ == job.n_epochs) return false;
        begin_epoch();
        return true;
    }

    // Ends training, given the file of learned parameters, or ends a test.
    void finish(int64_t n_steps_run, ResultFile* learned = nullptr)
    {
        show_progress(true);
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began_;
        std::ostringstream told;
        told.precision(17);
        told << "steps " << n_steps_run << "\nseconds " << seconds.count() << "\npeak_memory "
             << peak_memory() << "\n";
        if (job.train) {
            ResultFile history("history.bin");
            history.write(history_.data(), history_.size());
            told << job.settings << learned->finish() << history.finish();
        } else {
            close_checked(outcome_, "job/outcome.bin");
        }
        const std::string text = told.str();
        const std::string last = "checksum " + std::to_string(checksum(text.data(), text.size())) + "\n";
        ResultFile run("run.txt");
        run.write(text.data(), text.size());
        run.write(last.data(), last.size());
        run.finish();
        std::printf("glmbrian: %lld presentations in %.2f s, results are in the folder job\n",
                    (long long)(job.n_epochs * job.n_items), seconds.count());
    }

private:
    std::vector<int64_t> order_;
    std::vector<int32_t> labels_;
    std::vector<double> sample_weights_, history_;
    MappedArray<double> rate_factors_;
    double log_likelihood_[N_REPLICAS] = {0.0}, total_weight_[N_REPLICAS] = {0.0};
    double reward_ = 0.0;
    Baseline baseline_;
    std::ofstream outcome_;
    int64_t position_ = 0, epoch_ = 0, n_done_ = 0;
    std::chrono::steady_clock::time_point began_, reported_;

    void find_reward(double log_likelihood, double weight)
    {
        reward_ = baseline_.reward(log_likelihood);
        if (weight != 0.0) baseline_.add(log_likelihood);
    }

    void begin_epoch()
    {
        if (!job.train) {
            std::iota(order_.begin(), order_.end(), 0);
            return;
        }
        // Items are sorted by one hash each; see glmbrian.core.randomness.shuffled.
        const int64_t epochs_before = job.first_presentation / job.n_items;
        const uint64_t base = glm_hash(job.order_key, (uint64_t)(epochs_before + epoch_));
        std::vector<std::pair<uint64_t, int64_t>> ranked(job.n_items);
        for (int64_t n = 0; n < job.n_items; n++) ranked[n] = {glm_hash(base, (uint64_t)n), n};
        std::sort(ranked.begin(), ranked.end());
        for (int64_t n = 0; n < job.n_items; n++) order_[n] = ranked[n].second;
    }

    void show_progress(bool last)
    {
        const auto now = std::chrono::steady_clock::now();
        if (!last && now - reported_ < std::chrono::milliseconds(100)) return;
        reported_ = now;
        std::printf("glmbrian progress %lld %lld\n", (long long)(epoch_ * job.n_items + position_),
                    (long long)(job.n_epochs * job.n_items));
        std::fflush(stdout);
    }
};

// The mean of parameters over the averaged epochs.
class Mean {
public:
    explicit Mean(const Job& job) : n_epochs_(job.n_averaged) {}

    // Called after each of these epochs.
    template <class Parameters>
    void add(const Parameters& now)
    {
        n_written_ = 0;
        now.save(*this);
    }

    // Parameters are saved here as into a file.
    void write(const double* values, size_t size)
    {
        sums_.resize(std::max(sums_.size(), n_written_ + size));
        for (size_t n = 0; n < size; n++) sums_[n_written_++] += values[n];
    }

    void save(ResultFile& file) const
    {
        std::vector<double> mean(sums_);
        for (double& value : mean) value /= (double)n_epochs_;
        file.write(mean.data(), mean.size());
    }

private:
    int64_t n_epochs_;
    size_t n_written_ = 0;
    std::vector<double> sums_;
};

// A copy of the parameters of a layer other than the weights, and their updates.
template <int REPLICAS, int NEURONS, int FEEDBACK>
class OwnParameters {
public:
    static constexpr int TOTAL = REPLICAS * NEURONS;  // not N, which Brian2GeNN defines as a macro
    double bias[TOTAL], feedback[TOTAL * FEEDBACK + 1];  // a C++ array is never empty

    // `values` holds the feedback weights and biases, as in glmbrian.devices.problem.Parameters;
    // returns what follows them.
    const double* load(const double* values)
    {
        std::copy_n(values, TOTAL * FEEDBACK, feedback);
        std::copy_n(values + TOTAL * FEEDBACK, TOTAL, bias);
        clear();
        return values + TOTAL * (FEEDBACK + 1);
    }

    template <class File>
    void save(File& file) const
    {
        file.write(feedback, TOTAL * FEEDBACK);
        file.write(bias, TOTAL);
    }

    // Adds the gradient of a presentation in which neuron i spiked in step t if `spiked(t, i)`.
    template <class Spiked, int W, int K>
    void add_gradient(double weight, int replica, Spiked spiked, const double (&grad)[N_STEPS][NEURONS],
                      const double (&feedback_basis)[W][K])
    {
        const int first = replica * NEURONS;
        for (int t = 0; t < N_STEPS; t++)
            for (int i = 0; i < NEURONS; i++) bias_gradient_[first + i] += weight * grad[t][i];
        if (FEEDBACK == 0) return;
        std::vector<double> row(NEURONS * FEEDBACK);
        for (int t = 0; t < N_STEPS - 1; t++) {
            bool is_filtered = false;
            for (int i = 0; i < NEURONS; i++) {
                if (!spiked(t, i)) continue;
                if (!is_filtered) correlate(grad, feedback_basis, t, row.data());
                is_filtered = true;
                for (int k = i * FEEDBACK; k < (i + 1) * FEEDBACK; k++)
                    feedback_gradient_[first * FEEDBACK + k] += weight * row[k];
            }
        }
    }

    void apply(int replica, double rate)
    {
        for (int i = replica * NEURONS; i < (replica + 1) * NEURONS; i++) {
            bias[i] += rate * bias_gradient_[i];
            for (int k = i * FEEDBACK; k < (i + 1) * FEEDBACK; k++)
                feedback[k] += rate * feedback_gradient_[k];
        }
    }

    void decay(int replica, double factor)
    {
        for (int k = replica * NEURONS * FEEDBACK; k < (replica + 1) * NEURONS * FEEDBACK; k++)
            feedback[k] *= factor;
    }

    void clear()
    {
        std::fill_n(bias_gradient_, TOTAL, 0.0);
        std::fill_n(feedback_gradient_, TOTAL * FEEDBACK, 0.0);
    }

private:
    double bias_gradient_[TOTAL], feedback_gradient_[TOTAL * FEEDBACK + 1];
};

}  // namespace glmbrian

#endif  // GLMBRIAN_SCHEDULE_HPP
