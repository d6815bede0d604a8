// Transport norms on features, and the dual norms that price a weight vector.
#pragma once

#include <cmath>

#include "lanes.hpp"

namespace fdrsvm {

enum class Norm : int { l1 = 1, l2 = 2, linf = 3 };

// How moves are measured, [grouped-norm]: the norm of the groups' lengths, where a group of
// features, next to each other, is as long as its moves add up to.
struct Transport {
    Norm norm = Norm::linf;
    // Where each group starts, and the number of features at the end; empty where every feature is
    // a group of its own.
    std::span<const size_t> starts = {};

    bool is_grouped() const { return !starts.empty(); }
    size_t n_groups(size_t n_features) const {
        return is_grouped() ? starts.size() - 1 : n_features;
    }
    size_t start(size_t group) const { return is_grouped() ? starts[group] : group; }
    std::span<const double> group(std::span<const double> x, size_t j) const {
        return x.subspan(start(j), start(j + 1) - start(j));
    }
};

inline namespace FDRSVM_COPY {

inline bool all_finite(ConstVector x) {
    for (double value : x)
        if (!std::isfinite(value)) return false;
    return true;
}

inline double largest_magnitude(ConstVector x) {
    double largest = 0.0;
    for (double value : x) largest = std::fabs(value) > largest ? std::fabs(value) : largest;
    return largest;
}

inline double sum_of_magnitudes(ConstVector x) {
    return sum_lanes(x.size(), [&](size_t i, size_t count) {
        double magnitudes[kLanes] = {};
        for (size_t k = 0; k < count; ++k) magnitudes[k] = std::fabs(x[i + k]);
        return Lanes::load(magnitudes);
    });
}

// Squares neither overflow nor vanish.
inline double euclidean_length(ConstVector x) {
    const double largest = largest_magnitude(x);
    if (largest == 0.0) return 0.0;
    const double squares = sum_lanes(x.size(), [&](size_t i, size_t count) {
        const Lanes scaled = load_up_to(x.data() + i, count) / Lanes::all(largest);
        return scaled * scaled;
    });
    return largest * std::sqrt(squares);
}

// Dual of the transport norm: max |w| (l1), ||w||_2 (l2), sum |w| (linf).
inline double dual_norm(ConstVector w, Norm norm) {
    if (norm == Norm::linf) return sum_of_magnitudes(w);
    return norm == Norm::l1 ? largest_magnitude(w) : euclidean_length(w);
}

// The same with groups: of each group only its largest entry counts.
inline double dual_norm(ConstVector w, const Transport& transport) {
    if (!transport.is_grouped()) return dual_norm(w, transport.norm);
    Buffer<> largest(transport.n_groups(w.size()));
    for (size_t j = 0; j < largest.size(); ++j)
        largest[j] = largest_magnitude(transport.group(w, j));
    return dual_norm(largest, transport.norm);
}

// The transport norm itself: sum (l1), root of the sum of squares (l2) or maximum (linf) of the
// groups' sums of |x|.
inline double transport_norm(ConstVector x, const Transport& transport) {
    Buffer<> sums(transport.n_groups(x.size()));
    for (size_t j = 0; j < sums.size(); ++j) sums[j] = sum_of_magnitudes(transport.group(x, j));
    if (transport.norm == Norm::l1) return sum_of_magnitudes(sums);
    return transport.norm == Norm::l2 ? euclidean_length(sums) : largest_magnitude(sums);
}

// Adds `scale` times a subgradient of the dual norm at w. The largest entries share equally (of a
// group; for l1 of all), so that the order of features does not matter. At w = 0 any move of length
// 1 will do; 0 is the choice that keeps w at 0.
inline void add_dual_norm_subgradient(ConstVector w, const Transport& transport, double scale,
                                      Vector out) {
    const double size = dual_norm(w, transport);
    if (size == 0.0) return;
    const auto add = [&](size_t first, size_t last, double largest, double share) {
        double n_largest = 0.0;
        for (size_t p = first; p < last; ++p) n_largest += std::fabs(w[p]) == largest;
        for (size_t p = first; p < last; ++p)
            if (std::fabs(w[p]) == largest)
                out[p] += scale * (std::copysign(share, w[p]) / n_largest);
    };
    if (transport.norm == Norm::l1) return add(0, w.size(), size, 1.0);
    for (size_t j = 0; j < transport.n_groups(w.size()); ++j) {
        const double largest = largest_magnitude(transport.group(w, j));
        const double share = transport.norm == Norm::linf ? 1.0 : largest / size;
        if (largest > 0.0) add(transport.start(j), transport.start(j + 1), largest, share);
    }
}

}  // namespace FDRSVM_COPY
}  // namespace fdrsvm
