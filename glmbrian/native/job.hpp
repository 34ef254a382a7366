// What a compiled program is to do, read from the folder `job` when it starts, so that
// one program serves any data, seed, learning rate and number of epochs.
//
// The names from `glmbrian_model` (sizes, bases, activation) are written by the module
// of the device in glmbrian/devices.
#pragma once

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
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "glmbrian_model.hpp"

namespace glmbrian {

using namespace glmbrian_model;

// A replica is a network of its own, with N_CLASSES outputs, on the same inputs.
constexpr int N_OUTPUTS = N_REPLICAS * N_CLASSES;
constexpr int ROW = N_OUTPUTS * N_BASIS;  // weights of one input

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

// ---------------------------------------------------------------- files

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

// A file that the operating system reads where it is looked at, since data may be large.
template <class T>
class MappedArray {
public:
    void open(const std::string& path, size_t size)
    {
        const int file = ::open(path.c_str(), O_RDONLY);
        struct stat about;
        if (file < 0 || fstat(file, &about) != 0) fail("cannot read " + path);
        if ((size_t)about.st_size != size * sizeof(T)) fail(path + " has the wrong size");
        if (size == 0) return;
        void* data = mmap(nullptr, size * sizeof(T), PROT_READ, MAP_PRIVATE, file, 0);
        if (data == MAP_FAILED) fail("cannot read " + path);
        close(file);
        data_ = static_cast<const T*>(data);
    }
    const T& operator[](size_t n) const { return data_[n]; }

private:
    const T* data_ = nullptr;
};

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
    bool train, rate, early_stop, weighted;
    Data data;
    int64_t n_items, n_epochs, batch_size, target_period, first_presentation;
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
        weighted = text("weighted") == "1";
        const std::string kind = text("data");
        data = kind == "bytes" ? Data::bytes : kind == "levels" ? Data::levels : Data::trains;
        n_items = number("n_items");
        n_epochs = number("n_epochs");
        batch_size = number("batch_size");
        target_period = number("target_period");
        first_presentation = number("first_presentation");
        input_key = key64("input_key");
        output_key = key64("output_key");
        order_key = key64("order_key");
    }
};

}  // namespace glmbrian
