#include "runs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "../core/products.hpp"

namespace fdrsvm::steps {

namespace {

constexpr double kAllLosses = -1.0, kPositiveLosses = 0.0;  // what counts in z is above it
constexpr double kLogOfNothing = -1e100;  // the published z starts at 0; -inf would give nan
constexpr double kNoPenalty = 0.0, kNoStep = 0.0;

// The clients of a run, each with equal masses.
class Members {
  public:
    explicit Members(const Clients& clients) : mass_(clients.y.size()) {
        for (size_t g = 0; g < clients.count(); ++g) {
            const size_t first = static_cast<size_t>(clients.first[g]);
            const size_t size = static_cast<size_t>(clients.first[g + 1]) - first;
            const Vector mass(mass_.data() + first, size);
            for (double& each : mass) each = 1.0 / static_cast<double>(size);
            const ConstMatrix X = {clients.X[first].data(), size, clients.X.columns,
                                   clients.X.stride};
            samples_.push_back({Rows{X, {}}, clients.y.subspan(first, size), mass});
        }
    }
    const Samples& operator[](size_t g) const { return samples_[g]; }

  private:
    Buffer<> mass_;
    std::vector<Samples> samples_;
};

size_t largest_batch(const Draws& draws) {
    return static_cast<size_t>(*std::max_element(draws.sizes.begin(), draws.sizes.end()));
}

void add(Vector sum, ConstVector x) { add_scaled(sum.data(), 1.0, x.data(), x.size()); }

// Sets out to the sum over `count` and keeps it as the round's model.
void set_mean(ConstVector sum, size_t count, Vector out, Vector model) {
    for (size_t j = 0; j < sum.size(); ++j) out[j] = model[j] = sum[j] / static_cast<double>(count);
}

}  // namespace

// All clients' scores in one product: FedSGD needs no local model, so a round is one pass over X.
void fedsgd_run(const Clients& clients, ConstVector epsilons, double learning_rate, Matrix models) {
    const size_t n_clients = clients.count(), width = clients.X.columns;
    Buffer<> w(width, 0.0), gradient(width), scores(clients.X.rows);
    double penalty = 0.0;
    for (double epsilon : epsilons) penalty += epsilon;
    penalty /= static_cast<double>(n_clients);
    for (size_t t = 0; t < models.rows; ++t) {
        for (size_t j = 0; j < width; ++j) gradient[j] = 2.0 * penalty * w[j];
        times(clients.X, w, scores);
        for (size_t g = 0; g < n_clients; ++g) {
            const size_t first = static_cast<size_t>(clients.first[g]);
            const size_t last = static_cast<size_t>(clients.first[g + 1]);
            const double share = 1.0 / static_cast<double>((last - first) * n_clients);
            for (size_t n = first; n < last; ++n)
                if (clients.y[n] * scores[n] < 1.0)
                    add_scaled(gradient.data(), -share * clients.y[n], clients.X[n].data(), width);
        }
        const double step = learning_rate / std::sqrt(static_cast<double>(t + 1));
        for (size_t j = 0; j < width; ++j) models[t][j] = w[j] -= step * gradient[j];
    }
}

void fedprox_run(const Clients& clients, const Draws& draws, ConstVector epsilons, Descent descent,
                 Matrix models) {
    const size_t n_clients = clients.count(), width = clients.X.columns;
    const Members members(clients);
    Scratch scratch(width, largest_batch(draws));
    Buffer<> w(width, 0.0), local(width), sum(width);
    for (size_t t = 0; t < models.rows; ++t) {
        std::fill_n(sum.data(), width, 0.0);
        for (size_t g = 0; g < n_clients; ++g) {
            descent.epsilon = epsilons[g];
            local_epochs(members[g], draws.of_round(g, t), descent, w, local, scratch);
            add(sum, local);
        }
        set_mean(sum, n_clients, w, models[t]);
    }
}

void feddro_run(const Clients& clients, const Draws& draws, ConstVector epsilons,
                const TiltedRun& run, Matrix models) {
    const size_t n_clients = clients.count(), width = clients.X.columns;
    const Members members(clients);
    Scratch scratch(width, largest_batch(draws));
    Buffer<> w(width, 0.0), local(width), sum(width), log_moments(n_clients);
    Buffer<> momentums(draws.n_local, run.momentum);
    double log_moment = -kInfinity;
    for (size_t t = 0; t < models.rows; ++t) {
        // The very first step has no z to mix with, [feddro].
        momentums[0] = t == 0 ? 1.0 : run.momentum;
        std::fill_n(sum.data(), width, 0.0);
        for (size_t g = 0; g < n_clients; ++g) {
            const Tilt tilt = {epsilons[g], run.learning_rate, run.temperature, kAllLosses};
            std::copy_n(w.data(), width, local.data());
            TiltedState state = {local, log_moment, t * draws.n_local + 1};
            tilted_steps(members[g], draws.of_round(g, t), tilt, momentums, state, scratch);
            log_moments[g] = state.log_moment;
            add(sum, local);
        }
        set_mean(sum, n_clients, w, models[t]);
        log_moment = log_mean(log_moments);
    }
}

void feddro_published_run(const Clients& clients, const Draws& draws, const TiltedRun& run,
                          Matrix models) {
    const size_t n_clients = clients.count(), width = clients.X.columns;
    const Members members(clients);
    Scratch scratch(width, largest_batch(draws));
    Buffer<> w(width, 0.0), sum(width), unmoved(width), log_moments(n_clients);
    Buffer<> all(n_clients * width);
    const Matrix local = {all.data(), n_clients, width, width};
    const double rate = run.learning_rate / run.temperature, renewed = 1.0, kept = 0.0;
    const Tilt look = {kNoPenalty, kNoStep, run.temperature, kPositiveLosses};
    const Tilt move = {kNoPenalty, rate, run.temperature, kPositiveLosses};
    double log_moment = kLogOfNothing;
    for (size_t t = 0; t < models.rows; ++t) {
        for (size_t g = 0; g < n_clients; ++g) std::copy_n(w.data(), width, local[g].data());
        for (size_t s = 0; s < draws.n_local; ++s) {
            const auto batch = [&](size_t g) {
                const Batches all_steps = draws.of_round(g, t);
                return Batches{all_steps[s].data(), 1, all_steps.size};
            };
            // The authors' code shares z at every local step, [feddro-published]: first all clients
            // evaluate their batch without moving, then all move with the common z.
            for (size_t g = 0; g < n_clients; ++g) {
                std::copy_n(local[g].data(), width, unmoved.data());
                TiltedState state = {unmoved, -kInfinity, 1};
                tilted_steps(members[g], batch(g), look, {&renewed, 1}, state, scratch);
                log_moments[g] = state.log_moment;
            }
            const double newest = std::max(log_mean(log_moments), kLogOfNothing);
            log_moment = std::max(log_mix(log_moment, newest, run.momentum), kLogOfNothing);
            for (size_t g = 0; g < n_clients; ++g) {
                TiltedState state = {local[g], log_moment, t * draws.n_local + s + 1};
                tilted_steps(members[g], batch(g), move, {&kept, 1}, state, scratch);
            }
        }
        std::fill_n(sum.data(), width, 0.0);
        for (size_t g = 0; g < n_clients; ++g) add(sum, local[g]);
        set_mean(sum, n_clients, w, models[t]);
    }
}

}  // namespace fdrsvm::steps
