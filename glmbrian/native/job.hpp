// The task of a compiled program, read from the folder `job` when it starts, so one
// program serves any data, seed, learning rate and number of epochs.
//
// The device's module in glmbrian/devices writes the names in `glmbrian_model` (sizes,
// bases, activation).
#ifndef GLMBRIAN_JOB_HPP
#define GLMBRIAN_JOB_HPP

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "glmbrian_model.hpp"
#include "hash.hpp"

namespace glmbrian {

using namespace glmbrian_model;

// A replica is a separate network with N_CLASSES outputs on the same inputs.
constexpr int N_OUTPUTS = N_REPLICAS * N_CLASSES;
constexpr int ROW = N_OUTPUTS * N_BASIS;  // weights of one input

// ---------------------------------------------------------------- files

[[noreturn]] inline void fail(const std::string& message)
{
    std::cerr << "glmbrian: " << message << std::endl;
    std::exit(3);
}

// `hint` is added to the error about a wrong size.
template <class T>
std::vector<T> read_array(const std::string& path, size_t size, const std::string& hint = "")
{
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file) fail("cannot read " + path);
    if ((size_t)file.tellg() != size * sizeof(T)) fail(path + " has the wrong size" + hint);
    std::vector<T> values(size);
    file.seekg(0);
    file.read(reinterpret_cast<char*>(values.data()), size * sizeof(T));
    if (!file) fail("cannot read " + path);
    return values;
}

// A memory-mapped file, since data may be large.
template <class T>
class MappedArray {
public:
    void open(const std::string& path, size_t size)
    {
        const int file = ::open(path.c_str(), O_RDONLY);
        struct stat about;
        if (file < 0 || fstat(file, &about) != 0) fail("cannot read " + path);
        if ((size_t)about.st_size != size * sizeof(T)) fail(path + " has the wrong size");
        void* data = mmap(nullptr, size * sizeof(T), PROT_READ, MAP_PRIVATE, file, 0);
        close(file);
        if (data == MAP_FAILED) fail("cannot read " + path);
        data_ = static_cast<const T*>(data);
    }
    const T& operator[](size_t n) const { return data_[n]; }

private:
    const T* data_ = nullptr;
};

// Initial values must be finite; sample weights must not be negative.
inline std::vector<double> read_numbers(const std::string& path, size_t size, bool may_be_negative,
                                        const std::string& hint = "")
{
    const std::vector<double> values = read_array<double>(path, size, hint);
    for (const double value : values)
        if (!std::isfinite(value) || (value < 0 && !may_be_negative))
            fail(path + " must hold finite numbers" + (may_be_negative ? "" : " of at least 0") + ", got "
                 + std::to_string(value));
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
    if (!file) fail(std::string("cannot write ") + path + ": " + std::strerror(errno));
}

// CRC-32, as in zlib.
inline uint32_t checksum(const void* data, size_t size, uint32_t before = 0)
{
    static const std::vector<uint32_t> table = [] {
        std::vector<uint32_t> made(256);
        for (uint32_t n = 0; n < 256; n++) {
            uint32_t value = n;
            for (int bit = 0; bit < 8; bit++) value = value >> 1 ^ (value & 1 ? 0xEDB88320u : 0u);
            made[n] = value;
        }
        return made;
    }();
    uint32_t value = ~before;
    const unsigned char* bytes = static_cast<const unsigned char*>(data);
    for (size_t n = 0; n < size; n++) value = value >> 8 ^ table[(value ^ bytes[n]) & 0xFF];
    return ~value;
}

// A file that training writes to the folder job.  It gets its final name only when it is
// complete.  run.txt comes last, and holds the sizes and checksums of the others.
class ResultFile {
public:
    explicit ResultFile(const std::string& name)
        : name_(name), path_("job/" + name), file_(path_ + ".unfinished", std::ios::binary) {}

    template <class T>
    void write(const T* values, size_t size)
    {
        write_array(file_, values, size);
        size_ += size * sizeof(T);
        checksum_ = checksum(values, size * sizeof(T), checksum_);
    }

    // Returns lines for run.txt.
    std::string finish()
    {
        close_checked(file_, path_.c_str());
        if (std::rename((path_ + ".unfinished").c_str(), path_.c_str()) != 0)
            fail("cannot write " + path_ + ": " + std::strerror(errno));
        return name_ + "_size " + std::to_string(size_) + "\n" + name_ + "_checksum "
            + std::to_string(checksum_) + "\n";
    }

    // If this run fails, earlier results must not be mistaken for its own.
    static void remove_all()
    {
        for (const char* path : {"job/run.txt", "job/trained.bin", "job/history.bin", "job/trained_optimizer.bin"})
            if (std::remove(path) != 0 && errno != ENOENT) fail(std::string("cannot remove ") + path);
    }

private:
    std::string name_, path_;
    std::ofstream file_;
    size_t size_ = 0;
    uint32_t checksum_ = 0;
};

// Peak resident memory in bytes, as reported by the operating system.  (Linux's
// getrusage would include the memory of the process that started the program.)
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

// The lines of job/settings.txt, each with a name and a value.  Users may change them.
class Settings {
public:
    explicit Settings(const std::string& path) : path_(path)
    {
        std::ifstream file(path);
        if (!file) fail("cannot read " + path);
        for (std::string line; std::getline(file, line);) {
            std::istringstream words(line);
            std::string name, value, more;
            if (!(words >> name)) continue;
            if (!(words >> value) || words >> more)
                fail(path + ": each line must be a name and a value, got '" + line + "'");
            if (!values_.emplace(name, value).second) fail(path + ": " + name + " is given twice");
        }
    }

    std::string choice(const std::string& name, const std::vector<std::string>& allowed)
    {
        const std::string value = take(name);
        if (std::find(allowed.begin(), allowed.end(), value) == allowed.end()) {
            std::string listed;
            for (const std::string& one : allowed) listed += (listed.empty() ? "" : " or ") + one;
            fail(path_ + ": " + name + " must be " + listed + ", got '" + value + "'");
        }
        return value;
    }

    std::string text(const std::string& name) { return take(name); }

    // Decimal digits only: "1e3" is not a thousand.
    uint64_t integer(const std::string& name, uint64_t least, uint64_t most)
    {
        const std::string value = take(name);
        uint64_t number = 0;
        bool is_valid = true;
        for (const char character : value) {
            const uint64_t digit = (uint64_t)(unsigned char)character - '0';
            is_valid = is_valid && digit <= 9 && number <= (UINT64_MAX - digit) / 10;
            number = 10 * number + digit;
        }
        if (!is_valid || number < least || number > most)
            fail(path_ + ": " + name + " must be an integer from " + std::to_string(least) + " to "
                 + std::to_string(most) + ", got '" + value + "'");
        return number;
    }

    // Returns a finite number that is at least 0, written in decimals.
    double real(const std::string& name)
    {
        const std::string value = take(name);
        const double number = number_in(value);
        if (!(number >= 0.0)) fail(path_ + ": " + name + " must be a number from 0 on, got '" + value + "'");
        return number;
    }

    // Returns the numbers that commas separate; those that are not finite decimals are NAN.
    std::vector<double> numbers(const std::string& name)
    {
        const std::string value = take(name);
        std::vector<double> numbers;
        std::istringstream parts(value);
        for (std::string part; std::getline(parts, part, ',');) numbers.push_back(number_in(part));
        return numbers;
    }

    // Returns `size` finite numbers above 0, which commas separate.
    std::vector<double> above_zero(const std::string& name, size_t size)
    {
        const std::string value = values_.count(name) ? values_[name] : "";
        const std::vector<double> numbers = this->numbers(name);
        const auto is_above_zero = [](double number) { return number > 0.0; };
        const bool are_valid = std::all_of(numbers.begin(), numbers.end(), is_above_zero);
        if (!are_valid || numbers.size() != size || value.back() == ',')
            fail(path_ + ": " + name + " must be "
                 + (size == 1 ? "a number above 0" : std::to_string(size) + " numbers above 0, separated by commas")
                 + ", got '" + value + "'");
        return numbers;
    }

    // Returns all settings; fails if one was never read.
    std::string finish() const
    {
        if (!values_.empty()) fail(path_ + ": " + values_.begin()->first + " is not a setting");
        return taken_;
    }

private:
    const std::string path_;
    std::map<std::string, std::string> values_;
    std::string taken_;

    // Returns the finite number that a text is in decimals, or NAN.
    static double number_in(const std::string& text)
    {
        char* end;
        const double number = std::strtod(text.c_str(), &end);
        const bool is_plain = text.find_first_not_of("0123456789.e+-") == std::string::npos;
        return is_plain && !text.empty() && !*end && std::isfinite(number) ? number : NAN;
    }

    std::string take(const std::string& name)
    {
        const auto found = values_.find(name);
        if (found == values_.end()) fail(path_ + " lacks the setting " + name);
        const std::string value = found->second;
        values_.erase(found);
        taken_ += name + " " + value + "\n";
        return value;
    }
};

enum class Data { bytes, levels, trains };

// The settings of a run, read when the program starts.
struct Job {
    bool train, early_stop, weighted;
    Data data;
    int64_t n_items, n_epochs, batch_size, target_period, target_start, first_presentation;
    int64_t n_averaged;      // epochs at the end whose parameters are averaged; 0 for none
    int64_t n_planned;       // presentations that make up all of training, for the schedule
    double (*rate_factor)(double);  // the schedule; null if rate_factors.bin holds it
    std::vector<double> optimizer_settings;
    bool continues;  // whether optimizer.bin holds what the optimiser remembers
    double clip_norm;  // 0 for no clipping
    std::vector<double> learning_rates;  // one per replica, in training
    double weight_decay;
    int64_t adversarial_budget;  // the most spikes to change in a presentation; 0 for no attacks
    double adversarial_fraction;
    bool adversarial_adds, adversarial_removes;
    uint64_t input_key, output_key, order_key;
    std::string settings;  // as read from the file

    explicit Job(const std::string& path)
    {
        Settings given(path);
        train = given.choice("mode", {"train", "test"}) == "train";
        const std::string objective = given.text("decoding");
        if (objective != OBJECTIVE)
            fail(path + ": decoding must be " + OBJECTIVE
                 + ", which the program was exported for (to change it, export again), got '" + objective + "'");
        early_stop = !train && Objective::stops_at_first_spike;
        weighted = given.choice("weighted", {"0", "1"}) == "1";
        const std::string kind = given.choice("data", {"bytes", "levels", "trains"});
        data = kind == "bytes" ? Data::bytes : kind == "levels" ? Data::levels : Data::trains;
        // Each item takes at least one byte.
        n_items = (int64_t)given.integer("n_items", 1, size_of("job/data.bin"));
        n_epochs = (int64_t)given.integer("n_epochs", 1, INT64_MAX / n_items);
        if (train)
            learning_rates = given.above_zero("learning_rate", N_REPLICAS);
        else
            given.text("learning_rate");
        // As in GLMClassifier, which reads them back
        batch_size = (int64_t)given.integer("batch_size", 1, INT32_MAX);
        target_period = (int64_t)given.integer("target_period", 1, INT32_MAX);
        target_start = (int64_t)given.integer("target_start", 0, INT32_MAX);  // 0 is target_period
        n_averaged = (int64_t)given.integer("n_averaged", 0, n_epochs);
        std::vector<std::string> schedules = {"function"};
        for (const auto& one : SCHEDULES) schedules.push_back(one.name);
        const std::string schedule = given.choice("learning_rate_schedule", schedules);
        rate_factor = nullptr;
        for (const auto& one : SCHEDULES)
            if (schedule == one.name) rate_factor = one.factor;
        n_planned = (int64_t)given.integer("n_planned", 1, INT64_MAX);
        const std::string optimizer = given.text("optimizer");
        if (optimizer != OPTIMIZER)
            fail(path + ": optimizer must be " + OPTIMIZER
                 + ", which the program was exported for (to change it, export again), got '" + optimizer + "'");
        optimizer_settings = given.numbers("optimizer_settings");
        bool are_finite = optimizer_settings.size() == N_OPTIMIZER_SETTINGS;
        for (const double value : optimizer_settings) are_finite = are_finite && std::isfinite(value);
        if (!are_finite)
            fail(path + ": optimizer_settings must be " + std::to_string(N_OPTIMIZER_SETTINGS)
                 + " numbers, separated by commas");
        continues = given.choice("continues", {"0", "1"}) == "1";
        clip_norm = given.real("clip_norm");
        weight_decay = given.real("weight_decay");
        adversarial_budget = (int64_t)given.integer("adversarial_budget", 0, INT32_MAX);
        adversarial_fraction = given.real("adversarial_fraction");
        if (!(adversarial_fraction > 0.0 && adversarial_fraction <= 1.0))
            fail(path + ": adversarial_fraction must be above 0 and at most 1");
        adversarial_adds = given.choice("adversarial_adds", {"0", "1"}) == "1";
        adversarial_removes = given.choice("adversarial_removes", {"0", "1"}) == "1";
        if (!adversarial_adds && !adversarial_removes)
            fail(path + ": adversarial_adds or adversarial_removes must be 1");
        const uint64_t most = INT64_MAX - n_items * n_epochs;
        first_presentation = (int64_t)given.integer("first_presentation", 0, most);
        input_key = given.integer("input_key", 0, UINT64_MAX);
        output_key = given.integer("output_key", 0, UINT64_MAX);
        order_key = given.integer("order_key", 0, UINT64_MAX);
        settings = given.finish();
    }

    int64_t n_updates_per_epoch() const { return (n_items - 1) / batch_size + 1; }

    // The key of a hidden layer's draws: see glmbrian.core.randomness.hidden_key.
    uint64_t hidden_key(int number) const { return glm_hash(output_key, UINT64_MAX - 1 - number); }
    uint64_t adversarial_key() const { return glm_hash(output_key, 0 - (UINT64_C(1) << 39)); }

private:
    static uint64_t size_of(const std::string& path)
    {
        struct stat about;
        if (stat(path.c_str(), &about) != 0) fail("cannot read " + path);
        return about.st_size;
    }
};

}  // namespace glmbrian

#endif  // GLMBRIAN_JOB_HPP
