// A client's steps on mini-batches: [fedavg], [fedprox], [feddro].
//
// A batch stands for all N samples: a sample of mass p_n counts N p_n / (batch size) in it, which
// is 1 / (batch size) if masses are equal. An intercept is not penalised.
//
// FedDRO needs exp and log, whose last bits differ between C libraries: its models may too. It is a
// baseline, whose models are evaluated elsewhere; no certificate rests on these.
#pragma once

#include "rows.hpp"

namespace fdrsvm::steps {

// Scratch memory of the steps of one client after the other.
struct Scratch {
    Scratch(size_t width, size_t largest_batch)
        : gradient(width), factors(largest_batch), losses(largest_batch) {}

    Buffer<> gradient, factors, losses;
};

// Batches one below the other.
struct Batches {
    const std::int64_t* numbers;
    size_t count;
    size_t size;

    Indices operator[](size_t k) const { return {numbers + k * size, size}; }
};

// Of FedAvg and FedProx: steps of learning_rate / sqrt(s) in the s-th epoch.
struct Descent {
    double epsilon;
    double learning_rate;
    double prox_weight;
    size_t n_epochs;
};

// Sets model to where one pass over all batches leads from `centre`; they are in epochs of equal
// numbers of batches.
void local_epochs(const Samples& samples, const Batches& batches, const Descent& descent,
                  ConstVector centre, Vector model, Scratch& scratch);

// Of FedDRO: steps of learning_rate / sqrt(k), numbered over the whole run.
struct Tilt {
    double epsilon;
    double learning_rate;
    double temperature;
    double least;  // only losses above it count in z
};

// Where a client of FedDRO stands: before step `step`, with log z.
struct TiltedState {
    Vector model;
    double log_moment;
    size_t step;
};

// One step per batch, each with its momentum. The factors exp(loss / temperature) / z sum to
// 1 / momentum at most, since z holds that share of the newest moment: no loss is too large. Only
// with a z from elsewhere, at momentum 0, may they need their limit.
void tilted_steps(const Samples& samples, const Batches& batches, const Tilt& tilt,
                  ConstVector momentums, TiltedState& state, Scratch& scratch);

// The logarithm of (1 - share) a + share b, from those of a and b.
double log_mix(double log_a, double log_b, double share);

// The logarithm of the mean of numbers given by their logarithms.
double log_mean(ConstVector logs);

}  // namespace fdrsvm::steps
