#include "deal.hpp"

#include <limits>

namespace fdrsvm::steps {

namespace {

constexpr double kSlack = 1e-9;  // shares are rounded; a client is not left out for that

}  // namespace

void deal(ConstVector shares, std::span<std::int64_t> turns) {
    const size_t n_clients = shares.size();
    // A client is owed enough if one more row would not put it ahead of its share by more than
    // 1 - 1/(2G - 2), the best that any rule can promise.
    const double margin = n_clients == 1 ? 0.0 : 1.0 / static_cast<double>(2 * n_clients - 2);
    Buffer<> counts(n_clients, 0.0);
    for (size_t k = 0; k < turns.size(); ++k) {
        size_t best = 0;
        double first = std::numeric_limits<double>::infinity();
        for (size_t g = 0; g < n_clients; ++g) {
            const double owed = shares[g] * static_cast<double>(k + 1) - counts[g];
            if (!(shares[g] > 0.0) || !(owed >= margin - kSlack)) continue;
            const double due = (counts[g] + 1.0 - margin) / shares[g];
            if (due < first) {
                best = g;
                first = due;
            }
        }
        turns[k] = static_cast<std::int64_t>(best);
        counts[best] += 1.0;
    }
}

}  // namespace fdrsvm::steps
