#include "local.hpp"

#include <cmath>
#include <limits>

namespace fdrsvm::steps {

namespace {

constexpr double kMaxExponent = 600.0;  // exp stays finite, and so does a sum of many of them

// Sets out to the gradient of epsilon ||w||^2 + (prox_weight / 2) ||model - centre||^2.
void set_pull(ConstVector model, ConstVector centre, size_t n_features, const Descent& descent,
              Vector out) {
    for (size_t j = 0; j < model.size(); ++j) out[j] = descent.prox_weight * (model[j] - centre[j]);
    for (size_t j = 0; j < n_features; ++j) out[j] += 2.0 * descent.epsilon * model[j];
}

void set_penalty(ConstVector model, size_t n_features, double epsilon, Vector out) {
    for (size_t j = 0; j < n_features; ++j) out[j] = 2.0 * epsilon * model[j];
    if (model.size() > n_features) out[n_features] = 0.0;
}

void descend(Vector model, double step, ConstVector gradient) {
    for (size_t j = 0; j < model.size(); ++j) model[j] -= step * gradient[j];
}

// Log sum of weights exp(losses / temperature), losses above `least`; may be -inf. The largest loss
// is taken out first, so that nothing overflows however small the temperature, [feddro].
double log_moment_of(ConstVector losses, ConstVector weights, const Tilt& tilt) {
    const auto counts = [&](size_t i) { return weights[i] > 0.0 && losses[i] > tilt.least; };
    double top = -kInfinity;
    for (size_t i = 0; i < losses.size(); ++i)
        if (counts(i) && losses[i] > top) top = losses[i];
    if (top == -kInfinity) return top;
    double total = 0.0;
    for (size_t i = 0; i < losses.size(); ++i)
        if (counts(i)) total += weights[i] * std::exp((losses[i] - top) / tilt.temperature);
    return top / tilt.temperature + std::log(total);
}

}  // namespace

void local_epochs(const Samples& samples, const Batches& batches, const Descent& descent,
                  ConstVector centre, Vector model, Scratch& scratch) {
    const Vector factors(scratch.factors.data(), batches.size), gradient = scratch.gradient;
    const size_t n_features = samples.rows.n_features();
    const size_t per_epoch = batches.count / descent.n_epochs;
    // A batch stands for all samples: the mean over all batches is then the client's own gradient.
    const double stands_for =
        static_cast<double>(samples.y.size()) / static_cast<double>(batches.size);
    for (size_t j = 0; j < model.size(); ++j) model[j] = centre[j];
    for (size_t k = 0; k < batches.count; ++k) {
        const Indices batch = batches[k];
        batch_slacks(samples, batch, model, factors);
        for (size_t i = 0; i < batch.size(); ++i) {
            const size_t n = static_cast<size_t>(batch[i]);
            factors[i] = factors[i] > 0.0 ? -stands_for * samples.mass[n] * samples.y[n] : 0.0;
        }
        set_pull(model, centre, n_features, descent, gradient);
        add_samples(samples.rows, batch, factors, gradient);
        // The step falls with the epoch, not with the batch, and starts again each round, [fedavg].
        const double epoch = static_cast<double>(k / per_epoch + 1);
        descend(model, descent.learning_rate / std::sqrt(epoch), gradient);
    }
}

void tilted_steps(const Samples& samples, const Batches& batches, const Tilt& tilt,
                  ConstVector momentums, TiltedState& state, Scratch& scratch) {
    const Vector losses(scratch.losses.data(), batches.size);
    const Vector factors(scratch.factors.data(), batches.size), gradient = scratch.gradient;
    const double stands_for =
        static_cast<double>(samples.y.size()) / static_cast<double>(batches.size);
    for (size_t k = 0; k < batches.count; ++k, ++state.step) {
        const Indices batch = batches[k];
        batch_slacks(samples, batch, state.model, losses);
        for (size_t i = 0; i < batch.size(); ++i) {
            losses[i] = losses[i] > 0.0 ? losses[i] : 0.0;
            factors[i] = samples.mass[static_cast<size_t>(batch[i])] * stands_for;
        }
        // z is kept as a logarithm: exp(loss/temperature) itself overflows for large losses.
        const double newest = log_moment_of(losses, factors, tilt);
        state.log_moment = log_mix(state.log_moment, newest, momentums[k]);
        for (size_t i = 0; i < batch.size(); ++i) {
            if (losses[i] > 0.0 && factors[i] > 0.0) {
                const double exponent = losses[i] / tilt.temperature - state.log_moment;
                factors[i] *= -samples.y[static_cast<size_t>(batch[i])] *
                              std::exp(exponent < kMaxExponent ? exponent : kMaxExponent);
            } else {
                factors[i] = 0.0;
            }
        }
        set_penalty(state.model, samples.rows.n_features(), tilt.epsilon, gradient);
        add_samples(samples.rows, batch, factors, gradient);
        descend(state.model, tilt.learning_rate / std::sqrt(static_cast<double>(state.step)),
                gradient);
    }
}

double log_mix(double log_a, double log_b, double share) {
    log_a += std::log1p(-share);
    log_b += std::log(share);
    const double top = log_b > log_a ? log_b : log_a;
    if (top == -kInfinity) return top;
    return top + std::log(std::exp(log_a - top) + std::exp(log_b - top));
}

double log_mean(ConstVector logs) {
    double top = -kInfinity;
    for (double each : logs) top = each > top ? each : top;
    if (top == -kInfinity) return top;
    double total = 0.0;
    for (double each : logs) total += std::exp(each - top);
    return top + std::log(total / static_cast<double>(logs.size()));
}

}  // namespace fdrsvm::steps
