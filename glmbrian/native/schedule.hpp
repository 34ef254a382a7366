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
            if (!job.rate_factor)
                rate_factors_ = read_numbers("job/rate_factors.bin", job.n_epochs * job.n_updates_per_epoch(), false,
                                             ": the schedule of the learning rate has a factor for each update, so "
                                             "to change n_epochs, n_items or batch_size, export again");
            if (job.weighted)
                sample_weights_ = read_numbers("job/sample_weights.bin", N_REPLICAS * job.n_items, false);
        } else {
            outcome_.open("job/outcome.bin", std::ios::binary);
        }
        order_.resize(job.n_items);
        begin_epoch();
        find_rate_factor();
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
    // Of an update after this presentation.
    double learning_rate(int replica) const { return job.learning_rates[replica] * rate_factor_; }
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
        if (position_ == job.n_items && !end_epoch()) return false;
        find_rate_factor();
        return true;
    }

    // Ends training, given lines about the files of what was learned, or ends a test.
    void finish(int64_t n_steps_run, const std::string& learned)
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
            told << job.settings << learned << history.finish();
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
    std::vector<double> sample_weights_, history_, rate_factors_;
    double rate_factor_ = 1.0;
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

    // Returns whether there is another epoch.
    bool end_epoch()
    {
        for (int r = 0; r < N_REPLICAS; r++) {
            history_.push_back(total_weight_[r] > 0 ? log_likelihood_[r] / total_weight_[r] : 0.0);
            log_likelihood_[r] = total_weight_[r] = 0.0;
        }
        position_ = 0;
        if (++epoch_ == job.n_epochs) return false;
        begin_epoch();
        return true;
    }

    void find_rate_factor()
    {
        if (!job.train) return;
        const double done = std::min((double)presentation() / (double)job.n_planned, 1.0);
        rate_factor_ = job.rate_factor
            ? job.rate_factor(done)
            : rate_factors_[epoch_ * job.n_updates_per_epoch() + position_ / job.batch_size];
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

}  // namespace glmbrian

#endif  // GLMBRIAN_SCHEDULE_HPP
